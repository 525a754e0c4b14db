package support

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// This file makes a process the only writer of a file, or one of its readers. The lock ends with the
// process, however the process ends, and leaves nothing behind. The engine and the built-in stores
// use the same lock.
//
// The written file itself is locked, so it may be renamed or removed while it is locked. Lock
// libraries open a lock file of their own, do not hand it out, and notice neither. This package uses
// flock(2) and checks for both.

// Some network and FUSE mounts do not lock files, so nothing separates the processes of several
// machines there. If the user accepts that (NoLockVariable), a file in the folder for temporary files
// is locked instead of each file. That separates the processes of this machine, such as the processes
// of one command.

// NoLockVariable is an environment variable. If it is "1", files that cannot be locked are written
// nonetheless; plugins inherit it.
const NoLockVariable = "RACFLOW_NOLOCK"

// ErrNoLocks says that a file system does not lock files.
var ErrNoLocks = errors.New("this file system does not lock files, so nothing keeps two processes from writing there at once: " +
	"use a folder on a disk of this machine, or set " + NoLockVariable + "=1 and let only one racflow command at a time use the folder")

// ErrBusy says that another process, or another OpenLock of this process, has the lock.
var ErrBusy = errors.New("another process is writing it")

// OpenLock opens a file as os.OpenFile does, and locks it until it is closed. The error is ErrBusy if
// the lock is taken. Flags must not ask to truncate: that would happen before the file is locked.
func OpenLock(path string, flags int, perm fs.FileMode) (*File, error) {
	return open(path, flags, perm, syscall.LOCK_EX)
}

// OpenSharedLock is OpenLock for readers: several readers may have the lock, and then no writer gets
// it. The error is ErrBusy if a writer has the lock.
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
		// Between opening and locking, the file was renamed or removed. Its name now leads to another
		// file.
	}
}

// CloseLock unlocks a file and closes it. Closing alone is enough only if the process starts no other
// process meanwhile: a process that is just starting has the file open, too, until its program
// begins, and keeps the lock until then.
func CloseLock(f *File) error { return errors.Join(flock(f, syscall.LOCK_UN), f.Close()) }

func flock(f *File, how int) error {
	err := syscall.Flock(int(f.Fd()), how)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return ErrBusy
	case err == nil:
		return nil
	case !errors.Is(err, syscall.ENOLCK) && !errors.Is(err, errors.ErrUnsupported):
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	case how == syscall.LOCK_UN:
		return nil // Close does it
	case os.Getenv(NoLockVariable) != "1":
		return fmt.Errorf("%s: %w", f.Name(), ErrNoLocks)
	case filepath.Dir(f.Name()) == filepath.Clean(os.TempDir()):
		return nil // nothing on this machine can be locked
	}
	return f.lockBeside(how &^ syscall.LOCK_NB)
}

// lockBeside locks another file instead of this one, until this one is closed.
func (f *File) lockBeside(how int) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	of := info.Sys().(*syscall.Stat_t)
	path := filepath.Join(os.TempDir(), fmt.Sprintf("racflow-%d-%x-%x.lock", os.Getuid(), of.Dev, of.Ino))
	beside, err := open(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600, how)
	if err != nil {
		return err
	}
	f.unlock = func() {
		if how == syscall.LOCK_EX { // others may share it
			_ = os.Remove(path)
		}
		_ = CloseLock(beside) // nothing was written
	}
	return nil
}

// Close closes the file, and so unlocks it.
func (f *File) Close() error {
	if f.unlock != nil {
		defer f.unlock()
		f.unlock = nil
	}
	return f.File.Close()
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
