package fitted

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	unfinished = "new-"         // begins the names of folders that a stage still writes to
	settled    = 24 * time.Hour // for which what nobody should need is left alone all the same
)

// publish gives a folder its name, unless another process has made the same; then
// that one counts. A folder of that name that is there already stays.
func publish(fresh, whole string) error {
	if _, err := os.Stat(whole); err == nil {
		return nil
	}
	files := 0
	err := filepath.WalkDir(fresh, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() && !e.Type().IsRegular() {
			return err
		}
		if !e.IsDir() {
			files++
		}
		return force(path)
	})
	if err != nil {
		return err
	}
	if files == 0 {
		return errors.New("the stage has written nothing into its state_dir while it was fitted")
	}
	if err := os.Rename(fresh, whole); err != nil {
		if _, missing := os.Stat(whole); missing != nil {
			return err
		}
		return nil
	}
	sweep(whole)
	return force(filepath.Dir(whole))
}

// force writes a file or folder to the disk.
func force(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// sweep removes what a folder replaces, and what processes have left that were killed.
func sweep(whole string) {
	dir, name := filepath.Split(whole)
	stage, _, _ := strings.Cut(name, "-")
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		old := e.Name() != name && (strings.HasPrefix(e.Name(), stage+"-") || strings.HasPrefix(e.Name(), unfinished))
		if info, err := e.Info(); old && err == nil && time.Since(info.ModTime()) > settled {
			_ = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
}

// Remove removes what stages have learnt from a generation.
func Remove(dir, generation string) error {
	return os.RemoveAll(filepath.Join(dir, generation))
}
