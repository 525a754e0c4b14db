package store

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

	"github.com/racflow/racflow/engine/program"
)

// maxFiles is how many files, folders and links an archive may hold.
const maxFiles = 100_000

// unpack unpacks the tar.gz of a program's folder to dir, which is made. The folder itself may be
// the only one at the top of the archive. What could leave dir is refused; links are checked where
// the program is.
func unpack(from io.Reader, dir string) error {
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
	archive, left := tar.NewReader(packed), int64(MaxSize)
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
			return fmt.Errorf("the archive holds more than %d files or %d GiB", maxFiles, MaxSize>>30)
		}
		left -= h.Size
		if err := place(root, name, h, archive); err != nil {
			return fmt.Errorf("the archive's %s: %w", h.Name, err)
		}
	}
	// What follows the archive's end is part of its checksum.
	if _, err := io.Copy(io.Discard, io.LimitReader(packed, 1<<20)); err != nil {
		return fmt.Errorf("the archive cannot be read: %w", err)
	}
	return seal(dir)
}

// inFolder is the name of an entry below the program's folder; false: it is not unpacked.
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

// place unpacks one entry.
func place(root *os.Root, name string, h *tar.Header, content io.Reader) error {
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

// seal takes everybody's right to write from a folder and those in it.
func seal(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			err = os.Chmod(path, 0o500)
		}
		return err
	})
}
