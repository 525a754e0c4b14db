package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/racflow/racflow/sdk/support"
)

// WriteFile replaces a file atomically: readers see the old content or the new. The folder has to
// exist. With sync, the new content is on the disk when WriteFile returns; without sync, a power
// failure may lose it.
func WriteFile(path string, content []byte, sync bool) error {
	dir := filepath.Dir(path)
	f, err := support.CreateTemp(dir, "new-*") // creates it with FileMode
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if sync {
		err = errors.Join(err, f.Sync())
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = support.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	if !sync {
		return nil
	}
	return support.SyncFolder(dir)
}

// This file creates folders that only their owner can read, because racflow stores texts of its
// user and answers that the user has paid for.

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

// SocketRoot returns the folder for temporary files, or a shorter one if a socket's path would
// exceed 104 bytes. That path also has the names of a folder in it, of a process's folder in it and
// of the socket.
func SocketRoot() string {
	if dir := os.TempDir(); len(dir) <= 32 {
		return dir
	}
	return "/tmp"
}
