// Package private makes folders that only their owner can look into. What racflow
// keeps holds texts of its user, and answers that were paid for: other users of the
// machine have no business there. Temporary ones end with their process, or when the next one starts (Temp).
package private

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// FileMode is that of files in such a folder.
const FileMode fs.FileMode = 0o600

// MakeFolder makes a folder, and tightens it where it was made wider before. The
// folders above it are made where they are missing, and otherwise left alone.
func MakeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return Tighten(dir)
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

// Tighten takes the rights of others from a folder. One that is not there, or that
// belongs to somebody else, who decides about it, stays as it is.
func Tighten(dir string) error {
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
