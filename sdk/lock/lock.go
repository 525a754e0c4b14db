package lock

import (
	"errors"
	"io/fs"
	"os"
)

// ErrBusy says that another process, or another Open of this one, has the lock.
var ErrBusy = errors.New("another process is writing it")

// Open opens a file as os.OpenFile does, and locks it until it is closed. The error
// is ErrBusy where the lock is taken, and errors.ErrUnsupported where the system has
// no such locks. Flags must not ask to truncate: that would happen before the lock is
// there.
func Open(path string, flags int, perm fs.FileMode) (*os.File, error) {
	return open(path, flags, perm, try)
}

// OpenShared is Open for those who read: several of them may have the lock, and no writer
// while one does. The error is ErrBusy where a writer has it.
func OpenShared(path string, flags int) (*os.File, error) { return open(path, flags, 0, tryShared) }

func open(path string, flags int, perm fs.FileMode, try func(*os.File) error) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, flags, perm)
		if err != nil {
			return nil, err
		}
		same := false
		if err = try(f); err == nil {
			same, err = Names(path, f)
		}
		if err == nil && same {
			return f, nil
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		// Between opening and locking, the file was renamed or removed: what its
		// name leads to now is another file.
	}
}

// Close unlocks a file and closes it. To close it is enough where no processes are started meanwhile: one that is
// just being started has the file open, too, until its program begins, and keeps the lock for as long.
func Close(f *os.File) error { return errors.Join(unlock(f), f.Close()) }

// Names reports whether a path still leads to an open file.
func Names(path string, f *os.File) (bool, error) {
	named, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	opened, err := f.Stat()
	return err == nil && os.SameFile(named, opened), err
}
