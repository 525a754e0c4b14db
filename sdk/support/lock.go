package support

import (
	"errors"
	"io/fs"
	"os"
)

// This file makes a process the only writer of a file, or one of those that read it. The
// lock ends with the process, however that ends: it leaves nothing behind. The engine and the built-in
// stores take the same one.
//
// The file that is written is the file that is locked, so it may be renamed or
// removed while it is locked. Lock libraries open a lock file by themselves, do not
// hand it out, and notice neither; this package is flock(2) and that check.

// ErrBusy says that another process, or another Open of this one, has the lock.
var ErrBusy = errors.New("another process is writing it")

// OpenLock opens a file as os.OpenFile does, and locks it until it is closed. The error
// is ErrBusy where the lock is taken, and errors.ErrUnsupported where the system has
// no such locks. Flags must not ask to truncate: that would happen before the lock is
// there.
func OpenLock(path string, flags int, perm fs.FileMode) (*os.File, error) {
	return open(path, flags, perm, try)
}

// OpenSharedLock is Open for those who read: several of them may have the lock, and no writer
// while one does. The error is ErrBusy where a writer has it.
func OpenSharedLock(path string, flags int) (*os.File, error) { return open(path, flags, 0, tryShared) }

func open(path string, flags int, perm fs.FileMode, try func(*os.File) error) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, flags, perm)
		if err != nil {
			return nil, err
		}
		same := false
		if err = try(f); err == nil {
			same, err = SameFile(path, f)
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

// CloseLock unlocks a file and closes it. To close it is enough where no processes are started meanwhile: one that is
// just being started has the file open, too, until its program begins, and keeps the lock for as long.
func CloseLock(f *os.File) error { return errors.Join(unlock(f), f.Close()) }

// SameFile reports whether a path still leads to an open file.
func SameFile(path string, f *os.File) (bool, error) {
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
