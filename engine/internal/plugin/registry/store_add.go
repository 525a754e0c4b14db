package registry

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/process/program"
)

// maxProgram is the most bytes of a program with its whole folder.
const maxProgram = 8 << 30

// Add installs a program from its layer: the program itself or, with archive, a tar.gz of its folder. It fails if the
// program's hash is not want; an empty want accepts any. An installed program stays, unless it was changed. A failure
// leaves nothing behind.
func (s *Store) Add(name string, layer io.Reader, archive bool, want string, description []byte) (hash string, err error) {
	if err := disk.MakeFolder(s.dir); err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp(s.dir, "new-*") // only its owner can read it
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, removeAll(temp)) }()
	path := filepath.Join(temp, program.Prefix+name)
	if archive {
		err = unpackProgram(layer, path)
	} else {
		err = writeProgram(path, layer, 0o500)
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

// settle moves an unpacked program to its folder, unless another process has done so. It replaces a changed program.
func (s *Store) settle(temp, dir, name, hash string) error {
	if os.Rename(temp, dir) == nil {
		return nil
	}
	if _, err := s.Program(name, hash); err == nil {
		return nil
	}
	if err := removeAll(dir); err != nil {
		return err
	}
	return os.Rename(temp, dir)
}

// writeProgram writes a file that never changes later.
func writeProgram(path string, from io.Reader, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(from, maxProgram+1))
	if err == nil && n > maxProgram {
		err = fmt.Errorf("it has more than %d GiB", maxProgram>>30)
	}
	return errors.Join(err, f.Chmod(mode), f.Close())
}

// maxFiles is the most files, folders and links of an archive.
const maxFiles = 100_000

// unpackProgram unpacks the tar.gz of a program's folder to dir, which it creates. The archive may have the folder
// itself as its only top entry. unpackProgram refuses entries that could leave dir. Links are checked later, at the
// program's final place.
func unpackProgram(from io.Reader, dir string) error {
	packed, err := gzip.NewReader(from)
	if err != nil {
		return fmt.Errorf("the archive is no tar.gz: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	archive, left := tar.NewReader(packed), int64(maxProgram)
	for n := 0; ; n++ {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("the archive cannot be read: %w", err)
		}
		name, ok := inFolder(h, filepath.Base(dir))
		if !ok {
			continue
		}
		if n >= maxFiles || h.Size > left {
			return fmt.Errorf("the archive holds more than %d files or %d GiB", maxFiles, maxProgram>>30)
		}
		left -= h.Size
		if err := placeOf(root, name, h, archive); err != nil {
			return fmt.Errorf("the archive's %s: %w", h.Name, err)
		}
	}
	// The checksum covers the data after the archive's end, too.
	if _, err := io.Copy(io.Discard, io.LimitReader(packed, 1<<20)); err != nil {
		return fmt.Errorf("the archive cannot be read: %w", err)
	}
	return seal(dir)
}

// inFolder returns the name of an entry below the program's folder; false: skip it.
func inFolder(h *tar.Header, folder string) (string, bool) {
	name := path.Clean(strings.TrimPrefix(h.Name, "/"))
	if name == folder && h.Typeflag == tar.TypeDir {
		return "", false
	}
	if rest, ok := strings.CutPrefix(name, folder+"/"); ok {
		name = rest
	}
	return name, name != "." && !slices.ContainsFunc(strings.Split(name, "/"), program.Skipped)
}

// placeOf unpacks one entry.
func placeOf(root *os.Root, name string, h *tar.Header, content io.Reader) error {
	name = filepath.FromSlash(name)
	if !filepath.IsLocal(name) {
		return errors.New("it would be unpacked outside of the plugin's folder")
	}
	if h.Typeflag == tar.TypeDir {
		return root.MkdirAll(name, 0o700)
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeSymlink:
		return root.Symlink(h.Linkname, name)
	case tar.TypeReg:
		mode := fs.FileMode(0o400)
		if h.FileInfo().Mode()&0o111 != 0 {
			mode = 0o500
		}
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, content)
		return errors.Join(err, f.Chmod(mode), f.Close())
	case tar.TypeXGlobalHeader:
		return nil
	}
	return errors.New("it is neither a file, a folder nor a symbolic link")
}

// seal makes a folder and the folders in it read only.
func seal(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			err = os.Chmod(path, 0o500)
		}
		return err
	})
}
