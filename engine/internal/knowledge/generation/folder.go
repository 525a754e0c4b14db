package generation

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/sdk/support"
)

// This file copies the files of a collection of the store local, to take it to another machine while processes
// search it and write to it.
//
// A collection is a log and segments, which never change; plugins/internal/store/local/format.md describes
// them. Whoever has the lock is the only one who writes. So what is copied under the lock belongs together.
// A killed writer may have left something behind, which the store ignores.

// SegmentSuffix ends the names of files of a collection that never change.
const SegmentSuffix = ".segment"

// FolderName returns the name of a collection's folder.
func FolderName(collection string) string {
	var b strings.Builder
	for i := range len(collection) {
		switch c := collection[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '_', c == '-', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// patience is how long CopyFolder waits for a writer.
const patience = 10 * time.Second

// CopyFolder copies the files of a collection into a new folder, the segments as links where the file system
// has those, and returns their names. Later writes to the collection do not change the copy. The error is
// support.ErrBusy if another process writes to the collection for long.
func CopyFolder(collection, to string) (names []string, err error) {
	lock, err := lockFolder(collection)
	if err != nil {
		return nil, fmt.Errorf("collection %s: %w", collection, err)
	}
	defer lock.Close()
	if err := disk.MakeFolder(to); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(collection)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasSuffix(name, SegmentSuffix) {
			continue
		}
		if err := disk.LinkFile(filepath.Join(collection, name), filepath.Join(to, name)); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	const log = "log"
	return append(names, log), disk.CopyFile(filepath.Join(collection, log), filepath.Join(to, log))
}

// lockFolder takes the lock of a collection's writers.
func lockFolder(collection string) (*support.File, error) {
	for until := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		lock, err := support.OpenLock(filepath.Join(collection, "lock"), os.O_RDWR|os.O_CREATE, disk.FileMode)
		if !errors.Is(err, support.ErrBusy) || time.Now().After(until) {
			return lock, err
		}
	}
}
