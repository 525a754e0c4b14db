package private

import (
	"errors"
	"os"
	"path/filepath"
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
