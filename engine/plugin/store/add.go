package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/racflow/racflow/engine/private"
	"github.com/racflow/racflow/engine/program"
)

// MaxSize is the size of the largest program with all that belongs to it, in bytes.
const MaxSize = 8 << 30

// Add installs a program from its layer: the program itself or, as an archive, a tar.gz of the
// folder that belongs to it. It fails where the hash is not the one that is wanted; "": it was not
// known before. What is installed already is kept, unless it was changed. A failure leaves nothing.
func (s *Store) Add(name string, layer io.Reader, archive bool, want string, description []byte) (hash string, err error) {
	if err := private.MakeFolder(s.dir); err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp(s.dir, "new-*") // for its owner alone
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, removeAll(temp)) }()
	path := filepath.Join(temp, program.Prefix+name)
	if archive {
		err = unpack(layer, path)
	} else {
		err = write(path, layer, 0o500)
	}
	if err != nil {
		return "", fmt.Errorf("install the plugin %q: %w", name, err)
	}
	p, err := program.At(path)
	if err != nil {
		return "", err
	}
	p.Origin = program.Locked
	if hash, err = p.Check(); err != nil {
		return "", fmt.Errorf("install the plugin %q: %w", name, err)
	}
	if want != "" && hash != want {
		return "", fmt.Errorf("install the plugin %q: what was received has the hash %s, not %s: it is not what was published, or it was cut off", name, hash, want)
	}
	dir, err := s.folder(hash)
	if err != nil {
		return "", err
	}
	if err := s.describe(dir, description); err != nil {
		return "", err
	}
	return hash, s.settle(temp, dir, name, hash)
}

// settle puts an unpacked program where it belongs, unless another process has done so, and in
// place of one that was changed. Others see one or the other, whole.
func (s *Store) settle(temp, dir, name, hash string) error {
	for range 10 {
		failed := os.Rename(temp, dir)
		if failed == nil {
			return nil
		}
		if _, err := s.Program(name, hash); err == nil {
			return nil
		}
		aside, err := os.MkdirTemp(s.dir, "old-*")
		if err != nil {
			return err
		}
		err = os.Rename(dir, filepath.Join(aside, "changed"))
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // removed meanwhile
		}
		if err = errors.Join(err, removeAll(aside)); err != nil {
			return errors.Join(failed, err)
		}
	}
	return fmt.Errorf("%s is changed by other processes all the time: install the plugin again", dir)
}

// write writes a file that nobody changes later.
func write(path string, from io.Reader, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(from, MaxSize+1))
	if err == nil && n > MaxSize {
		err = fmt.Errorf("it has more than %d GiB", MaxSize>>30)
	}
	return errors.Join(err, f.Chmod(mode), f.Close())
}
