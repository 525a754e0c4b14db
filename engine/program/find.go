package program

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Prefix begins the name of every third party's plugin binary.
const Prefix = "racflow-plugin-"

// Plugin is a third party's program. A pipeline file uses its stages as NAME/STAGE.
type Plugin struct {
	Name string
	Path string // absolute
}

// Find lists the plugins in folders: programs named racflow-plugin-NAME. Of two with the same
// name it returns the one in the earlier folder. Folders that do not exist have none.
func Find(dirs []string) ([]Plugin, error) {
	var all []Plugin
	seen := map[string]bool{}
	for _, dir := range dirs {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return nil, fmt.Errorf("look for plugins: %w", err)
		}
		if info, err := os.Stat(dir); err == nil && !info.IsDir() {
			return nil, fmt.Errorf("look for plugins: %s is not a folder", dir)
		}
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("look for plugins: %w", err)
		}
		for _, e := range entries {
			name, ok := strings.CutPrefix(e.Name(), Prefix)
			if !ok || name == "" || seen[name] {
				continue
			}
			path := filepath.Join(dir, e.Name())
			if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
				continue
			}
			seen[name] = true
			all = append(all, Plugin{Name: name, Path: path})
		}
	}
	return all, nil
}
