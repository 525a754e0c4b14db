package wal

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/racflow/racflow/plugins/store/local/internal/row"
	"github.com/racflow/racflow/sdk"
)

// Appender writes frames behind the end of a log.
type Appender struct {
	F    *os.File
	ID   [16]byte
	Sync bool
	End  int64
	buf  []byte
}

// Create starts a new log under a name of its own, beside the one that it
// will replace.
func Create(path string, schema sdk.Schema, sync bool) (*Appender, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	a := &Appender{F: f, Sync: sync, End: int64(HeaderSize)}
	_, _ = rand.Read(a.ID[:]) // documented never to fail
	if _, err = f.WriteAt(header(a.ID), 0); err == nil {
		_, err = a.append(kindSchema, func(b []byte) []byte { return appendSchema(b, schema) })
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return a, nil
}

// ErrUnsure says that a log replaced another one, but that a power failure may undo
// that. The files that either of them lists must stay.
var ErrUnsure = errors.New("it is not certain that the new log is on the disk")

// Rename puts a log in the place of another, durably.
func (a *Appender) Rename(path string) error {
	if err := a.flush(); err != nil {
		return err
	}
	if err := os.Rename(a.F.Name(), path); err != nil || !a.Sync {
		return err
	}
	if err := SyncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("%w: %w", ErrUnsure, err)
	}
	return nil
}

// Change appends a change.
func (a *Appender) Change(one row.Change) error {
	_, err := a.change(one)
	return err
}

// ChangeAndRead appends a change and returns what a reader makes of it.
func (a *Appender) ChangeAndRead(one row.Change, dimension int) (row.Change, error) {
	f, err := a.change(one)
	if err != nil {
		return one, err
	}
	read, ok := DecodeChange(f, dimension)
	if !ok {
		return one, errors.New("a record cannot be read back")
	}
	return read, nil
}

func (a *Appender) change(one row.Change) (Frame, error) {
	if one.Put != nil {
		return a.append(KindPut, func(b []byte) []byte { return appendPut(b, one.Put) })
	}
	return a.append(kindDelete, func(b []byte) []byte { return appendDelete(b, one.Delete) })
}

// Base appends a base, which must be the first frame.
func (a *Appender) Base(files []Listed) error {
	_, err := a.append(KindBase, func(b []byte) []byte { return appendBase(b, files) })
	return err
}

// append writes one frame, which stays valid until the next call.
func (a *Appender) append(k Kind, payload func([]byte) []byte) (Frame, error) {
	b := payload(append(a.buf[:0], make([]byte, FrameHeader)...))
	if len(b) > FrameHeader+maxPayload {
		return Frame{}, errors.New("a record is larger than 1 GiB")
	}
	binary.LittleEndian.PutUint32(b, uint32(len(b)-FrameHeader))
	b[4] = byte(k)
	binary.LittleEndian.PutUint32(b[5:], FrameChecksum(b[:5], b[FrameHeader:]))
	a.buf = b
	if _, err := a.F.WriteAt(b, a.End); err != nil {
		return Frame{}, err
	}
	f := Frame{Kind: k, Offset: a.End, Payload: b[FrameHeader:]}
	a.End += int64(len(b))
	return f, nil
}

// Commit makes everything written so far count. Syncing before the commit frame
// is what lets a reader know a torn tail from damage; see format.md.
func (a *Appender) Commit(next uint64, note []byte) error {
	if err := a.flush(); err != nil {
		return err
	}
	at := a.End
	if _, err := a.append(kindCommit, func(b []byte) []byte { return appendCommit(b, at, next, note) }); err != nil {
		return err
	}
	return a.flush()
}

func (a *Appender) flush() error {
	if !a.Sync {
		return nil
	}
	return a.F.Sync()
}

// SyncDir makes new names in a folder durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
