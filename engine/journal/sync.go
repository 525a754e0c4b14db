package journal

import (
	"errors"
	"io"
	"os"

	"github.com/racflow/racflow/engine/private"
	"github.com/racflow/racflow/sdk/support"
)

// Sync says which results a power failure leaves. The end of the process loses nothing that
// was kept, whatever Sync is. What is lost is answered again by a resumed run.
type Sync string

// When the journal is forced to the disk.
const (
	// SyncNone leaves it to the system: a power failure may lose what was kept in the
	// seconds before it, also where the output has it already.
	SyncNone Sync = "none"
	// SyncBatch forces it once for each batch of results that travelled together, before
	// any of them is written to the output or reported: a power failure loses no result that
	// was reported.
	SyncBatch Sync = "batch"
	// SyncItem forces it for each result, before the next one of its batch is kept: of a
	// batch that is being kept when the power fails, too, only one result is lost.
	SyncItem Sync = "item"
)

// Forces reports whether anything is forced to the disk.
func (s Sync) Forces() bool { return s == SyncBatch || s == SyncItem }

// Keep says of which items the journal has what was seen of them.
type Keep string

// What a journal keeps.
const (
	KeepNotable Keep = "notable" // of items that are flagged, failed, wrong or without an answer
	KeepAll     Keep = "all"
)

// Options say how a run is kept. The zero value is SyncNone and KeepNotable.
type Options struct {
	Sync Sync
	Keep Keep

	disk disk // nil: that of the system
}

// file is an open file of a run.
type file interface {
	io.ReaderAt
	io.WriterAt
	Truncate(size int64) error
	Sync() error
	Close() error
}

// disk is where files are.
type disk interface {
	open(path string, flags int) (file, error)
	locked(*os.File) file
	syncFolder(path string) error
}

type system struct{}

func (system) open(path string, flags int) (file, error) {
	return os.OpenFile(path, flags, private.FileMode)
}

func (system) locked(f *os.File) file { return lockedFile{f} }

// lockedFile is not locked any more once it is closed, whatever processes are being started.
type lockedFile struct{ *os.File }

func (f lockedFile) Close() error { return support.CloseLock(f.File) }

func (system) syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
