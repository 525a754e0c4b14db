package ship

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Trim removes kept files that nobody has asked for since a time, and what workers have left that were
// killed. State folders that have links of them keep their content.
func (k Kept) Trim(before time.Time) error {
	entries, err := os.ReadDir(k.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		info, statErr := e.Info()
		if statErr != nil || info.ModTime().After(before) {
			continue
		}
		if removed := os.Remove(filepath.Join(k.Dir, e.Name())); !errors.Is(removed, fs.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}
	return err
}
