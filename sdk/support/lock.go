package support

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
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
// is ErrBusy where the lock is taken. Flags must not ask to truncate: that would happen
// before the lock is there.
func OpenLock(path string, flags int, perm fs.FileMode) (*File, error) {
	return open(path, flags, perm, syscall.LOCK_EX)
}

// OpenSharedLock is Open for those who read: several of them may have the lock, and no writer
// while one does. The error is ErrBusy where a writer has it.
func OpenSharedLock(path string, flags int) (*File, error) {
	return open(path, flags, 0, syscall.LOCK_SH)
}

func open(path string, flags int, perm fs.FileMode, how int) (*File, error) {
	for {
		f, err := OpenFile(path, flags, perm)
		if err != nil {
			return nil, err
		}
		same := false
		if err = flock(f, how|syscall.LOCK_NB); err == nil {
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
func CloseLock(f *File) error { return errors.Join(flock(f, syscall.LOCK_UN), f.Close()) }

func flock(f *File, how int) error {
	err := syscall.Flock(int(f.Fd()), how)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrBusy
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
}

// SameFile reports whether a path still leads to an open file.
func SameFile(path string, f interface{ Stat() (fs.FileInfo, error) }) (bool, error) {
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
