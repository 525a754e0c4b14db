package local

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/racflow/racflow/sdk"
)

// appender writes frames behind the end of a log.
type appender struct {
	f    *os.File
	id   [16]byte
	sync bool
	end  int64
	buf  []byte
}

// createLog starts a new log under a name of its own, beside the one that it
// will replace.
func createLog(path string, schema sdk.Schema, sync bool) (*appender, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	a := &appender{f: f, sync: sync, end: int64(headerSize)}
	_, _ = rand.Read(a.id[:]) // documented never to fail
	if _, err = f.WriteAt(header(a.id), 0); err == nil {
		_, err = a.append(kindSchema, func(b []byte) []byte { return appendSchema(b, schema) })
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return a, nil
}

// errUnsure says that a log took the place of another, but that a power failure
// may undo it. The files that either of them lists have to stay.
var errUnsure = errors.New("it is not certain that the new log is on the disk")

// rename puts a log in the place of another, durably.
func (a *appender) rename(path string) error {
	if err := a.flush(); err != nil {
		return err
	}
	if err := os.Rename(a.f.Name(), path); err != nil || !a.sync {
		return err
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("%w: %w", errUnsure, err)
	}
	return nil
}

// append writes one frame and returns its payload, which stays valid until the
// next call.
func (a *appender) append(k kind, payload func([]byte) []byte) ([]byte, error) {
	b := payload(append(a.buf[:0], make([]byte, frameHeader)...))
	if len(b) > frameHeader+maxPayload {
		return nil, errors.New("a record is larger than 1 GiB")
	}
	le.PutUint32(b, uint32(len(b)-frameHeader))
	b[4] = byte(k)
	le.PutUint32(b[5:], checksum(b[:5], b[frameHeader:]))
	a.buf = b
	if _, err := a.f.WriteAt(b, a.end); err != nil {
		return nil, err
	}
	a.end += int64(len(b))
	return b[frameHeader:], nil
}

// commit makes everything written so far count. Syncing before the commit frame
// is what lets a reader tell a torn tail from damage; see format.md.
func (a *appender) commit(next uint64, note []byte) error {
	if err := a.flush(); err != nil {
		return err
	}
	at := a.end
	if _, err := a.append(kindCommit, func(b []byte) []byte { return appendCommit(b, at, next, note) }); err != nil {
		return err
	}
	return a.flush()
}

func (a *appender) flush() error {
	if !a.sync {
		return nil
	}
	return a.f.Sync()
}

// syncDir makes new names in a folder durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
