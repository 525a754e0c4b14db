package disk

import (
	"errors"
	"fmt"
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

// MakeBelow calls MakeFolder for dir and for each folder between dir and root, and refuses what
// ownFile refuses. It does not change root.
func MakeBelow(root, dir string) error {
	inside, err := filepath.Rel(root, dir)
	if err != nil || !filepath.IsLocal(inside) {
		return MakeFolder(dir)
	}
	at := root
	for name := range strings.SplitSeq(inside, string(filepath.Separator)) {
		at = filepath.Join(at, name)
		if info, err := os.Lstat(at); err == nil {
			if err := ownFile(at, info); err != nil {
				return err
			}
		}
		if err := MakeFolder(at); err != nil {
			return err
		}
	}
	return nil
}

// ownFile refuses links, pipes, devices and other users' files: another user has put them into the
// state folder. Through them, racflow would read, change and hand to plugins what is not its own.
func ownFile(path string, info fs.FileInfo) error {
	var why string
	user := 0
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		user = int(stat.Uid)
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		why = "a link"
	case !info.IsDir() && !info.Mode().IsRegular():
		why = "neither a file nor a folder"
	case user != os.Geteuid() && user != 0:
		why = fmt.Sprintf("owned by user %d, and you are %d", user, os.Geteuid())
	default:
		return nil
	}
	return fmt.Errorf("%s is %s, which racflow does not make in its state folder: remove it, or name another state folder", path, why)
}

// OwnFiles checks ownFile for everything in a folder, which need not exist. It does not look into
// folders for which skip (unless nil) returns true; skip gets their paths within the folder.
func OwnFiles(dir string, skip func(inside string) bool) error {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil //nolint:nilerr // there is nothing yet, or its use says why it cannot be reached
	}
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return nil //nolint:nilerr // what vanishes or cannot be read is not used, or its use says why
		}
		info, err := d.Info()
		if err != nil {
			return nil //nolint:nilerr // as above
		}
		inside, _ := filepath.Rel(root, path) // path lies below root
		if err = ownFile(filepath.Join(dir, inside), info); err == nil && d.IsDir() && skip != nil && skip(inside) {
			err = fs.SkipDir
		}
		return err
	})
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

// SocketRoot returns the folder for temporary files, or a shorter one if a socket's path would exceed
// 104 bytes. The path also holds a folder's name, the name of a process's folder in it, and the
// socket's name.
func SocketRoot() string {
	if dir := os.TempDir(); len(dir) <= 32 {
		return dir
	}
	return "/tmp"
}
