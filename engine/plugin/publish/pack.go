package publish

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/racflow/racflow/engine/program"
)

// pack writes the tar.gz of a program's folder. The same folder makes the same bytes: names are sorted, and times, owners and
// all rights but that to execute are left out.
func pack(folder string, to io.Writer) error {
	folder, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return err
	}
	packed := gzip.NewWriter(to)
	out := tar.NewWriter(packed)
	err = filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path != folder && program.Skipped(e.Name()) {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		name, err := filepath.Rel(folder, path)
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		h := &tar.Header{Name: filepath.ToSlash(name), Mode: 0o644, Typeflag: tar.TypeReg, Size: info.Size(), Format: tar.FormatPAX}
		if info.Mode()&0o111 != 0 {
			h.Mode = 0o755
		}
		if info.Mode()&fs.ModeSymlink != 0 { // Check has seen that it stays inside
			h.Typeflag, h.Mode, h.Size = tar.TypeSymlink, 0o777, 0
			if h.Linkname, err = os.Readlink(path); err != nil {
				return err
			}
			return out.WriteHeader(h)
		}
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, f)
		return errors.Join(err, f.Close())
	})
	return errors.Join(err, out.Close(), packed.Close())
}
