package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/racflow/racflow/sdk/support"
)

// WriteFile replaces a file atomically: readers see the old content or the new. The folder has to
// exist. With sync, the new content is on the disk when WriteFile returns; without sync, a power
// failure may lose it.
func WriteFile(path string, content []byte, sync bool) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "new-*") // creates it with FileMode
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if sync {
		err = errors.Join(err, f.Sync())
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	if !sync {
		return nil
	}
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// This file creates folders that only their owner can read, because racflow stores texts of its
// user and answers that the user has paid for. Temporary folders are removed when their process
// ends, or by the next process (TempFolder).

// FileMode is the mode of files in such a folder.
const FileMode fs.FileMode = 0o600

// MakeFolder creates a folder, and restricts an existing one with wider permissions. It creates
// missing parent folders, and does not change existing ones.
func MakeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return TightenFolder(dir)
}

// MakeBelow calls MakeFolder for dir and for each folder between it and root. It does not change
// root.
func MakeBelow(root, dir string) error {
	inside, err := filepath.Rel(root, dir)
	if err != nil || !filepath.IsLocal(inside) {
		return MakeFolder(dir)
	}
	at := root
	for name := range strings.SplitSeq(inside, string(filepath.Separator)) {
		at = filepath.Join(at, name)
		if err := MakeFolder(at); err != nil {
			return err
		}
	}
	return nil
}

// TightenFolder removes the permissions of other users from a folder. It does not change a folder
// that is missing or that another user owns.
func TightenFolder(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && info.Mode()&0o077 != 0 {
		err = os.Chmod(dir, info.Mode()&^0o077)
	}
	if errors.Is(err, fs.ErrNotExist) || ReadOnly(err) {
		return nil
	}
	return err
}

// ReadOnly reports whether an error says that this user, or everybody, may not write a file or folder.
func ReadOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// Limits of the search for folders that killed processes left (see TempFolder).
const (
	maxLooked  = 20_000 // names in a folder for temporary files
	maxRemoved = 32     // folders
)

// lockName is a file in each temporary folder. The process that created the folder locks it.
const lockName = "lock"

// prefix starts the names of this user's temporary folders.
func prefix() string { return fmt.Sprintf("racflow-%d.", os.Getuid()) }

// swept holds the folders in which this process has already searched for abandoned ones.
var swept sync.Map

// SocketRoot returns the folder for temporary files, or a shorter one if a socket's path would
// exceed 104 bytes. That path also has the names of a TempFolder, of a process's folder in it and
// of the socket.
func SocketRoot() string {
	if dir := os.TempDir(); len(dir) <= 32 {
		return dir
	}
	return "/tmp"
}

// TempFolder creates a temporary folder in root that lasts until remove is called or this process ends. The first call
// for a root also removes folders that dead processes of this user left: those that no process locks.
func TempFolder(root string) (dir string, remove func(), err error) {
	if _, done := swept.LoadOrStore(root, true); !done {
		sweep(root)
	}
	for range 5 { // another process may remove a new folder as abandoned before it is locked
		if dir, err = os.MkdirTemp(root, prefix()); err != nil {
			return "", nil, err
		}
		var held *os.File
		held, err = support.OpenLock(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, FileMode)
		if err == nil {
			return dir, func() { _ = errors.Join(os.RemoveAll(dir), support.CloseLock(held)) }, nil
		}
		if errors.Is(err, errors.ErrUnsupported) { // without locks no process removes abandoned folders
			return dir, func() { _ = os.RemoveAll(dir) }, nil
		}
		if _ = os.RemoveAll(dir); !errors.Is(err, support.ErrBusy) && !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return "", nil, err
}

// sweep removes the folders that TempFolder created for dead processes. It may leave some.
func sweep(root string) {
	folder, err := os.Open(root)
	if err != nil {
		return
	}
	names, _ := folder.Readdirnames(maxLooked)
	_ = folder.Close()
	removed := 0
	for _, name := range names {
		if !strings.HasPrefix(name, prefix()) || removed == maxRemoved {
			continue
		}
		dir := filepath.Join(root, name)
		held, err := support.OpenLock(filepath.Join(dir, lockName), os.O_RDWR, 0)
		if err != nil {
			continue // its process is alive, or about to lock it
		}
		_ = errors.Join(os.RemoveAll(dir), support.CloseLock(held))
		removed++
	}
}
