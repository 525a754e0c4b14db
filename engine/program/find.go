package program

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Find lists what is named racflow-plugin-NAME in folders, in their order, without looking
// whether it can be started. Several of one name are all listed. A folder that does not exist
// has none, and one that is named twice counts once.
func Find(dirs []string) ([]Program, error) {
	var all []Program
	var seen []string
	for _, dir := range dirs {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return nil, fmt.Errorf("look for plugins: %w", err)
		}
		if info, err := os.Stat(dir); err == nil && !info.IsDir() {
			return nil, fmt.Errorf("look for plugins: %s is not a folder", dir)
		}
		real, err := filepath.EvalSymlinks(dir)
		if errors.Is(err, fs.ErrNotExist) || slices.Contains(seen, real) {
			continue
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("look for plugins: %w", err)
		}
		seen = append(seen, real)
		for _, e := range entries {
			if name, ok := strings.CutPrefix(e.Name(), Prefix); ok && name != "" {
				p, err := At(filepath.Join(dir, e.Name()))
				if err != nil {
					return nil, err
				}
				all = append(all, p)
			}
		}
	}
	return all, nil
}
