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

// WriteFile replaces a file as a whole: readers find the old content or the new. Its folder
// has to exist. With sync, the new content is on the disk when WriteFile returns; without, a
// power failure may lose it.
func WriteFile(path string, content []byte, sync bool) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "new-*") // with FileMode
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

// This file makes folders that only their owner can look into. What racflow
// keeps holds texts of its user, and answers that were paid for: other users of the
// machine have no business there. Temporary ones end with their process, or when the next one starts (Temp).

// FileMode is that of files in such a folder.
const FileMode fs.FileMode = 0o600

// MakeFolder makes a folder, and tightens it where it was made wider before. The
// folders above it are made where they are missing, and otherwise left alone.
func MakeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return TightenFolder(dir)
}

// MakeBelow makes a folder with MakeFolder, and so each that lies between it and
// the root, which is left alone.
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

// TightenFolder takes the rights of others from a folder. One that is not there, or that
// belongs to somebody else, who decides about it, stays as it is.
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

// ReadOnly reports whether an error says that this user may not write something, or nobody may.
func ReadOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// Bounds of what Temp does about folders that killed processes left.
const (
	maxLooked  = 20_000 // names in a folder for temporary files
	maxRemoved = 32     // folders
)

// lockName is a file in each temporary folder, which the process locks that has made it.
const lockName = "lock"

// prefix begins the names of this user's temporary folders.
func prefix() string { return fmt.Sprintf("racflow-%d.", os.Getuid()) }

// swept has the folders in which this process has looked for what others left.
var swept sync.Map

// TempFolder makes a temporary folder in root, for as long as this process lives or until remove is
// called. The first time, it removes such folders of this user whose process is dead, which their lock says for certain.
func TempFolder(root string) (dir string, remove func(), err error) {
	if _, done := swept.LoadOrStore(root, true); !done {
		sweep(root)
	}
	for range 5 { // another process may take a new folder for a left one before it is locked
		if dir, err = os.MkdirTemp(root, prefix()); err != nil {
			return "", nil, err
		}
		var held *os.File
		held, err = support.OpenLock(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, FileMode)
		if err == nil {
			return dir, func() { _ = errors.Join(os.RemoveAll(dir), support.CloseLock(held)) }, nil
		}
		if errors.Is(err, errors.ErrUnsupported) { // then nobody removes what others left
			return dir, func() { _ = os.RemoveAll(dir) }, nil
		}
		if _ = os.RemoveAll(dir); !errors.Is(err, support.ErrBusy) && !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return "", nil, err
}

// sweep removes folders that Temp made for processes that are dead. At worst some stay.
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
