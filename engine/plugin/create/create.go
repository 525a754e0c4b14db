package create

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/catalog"
	"github.com/racflow/racflow/sdk"
)

// The languages that there are templates in.
const (
	Go     = "go"
	Python = "python"
)

// Options say which project is written.
type Options struct {
	Kind sdk.Kind
	Name string // of the plugin and of its stage
	Lang string // Go or Python
	SDK  string // the version of racflow's module; a project in Go may have the folder of a checkout of it
}

// names are those that a plugin may have: they become a program's name, and a key of a file.
var names = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// Check reports what is wrong with options.
func (o Options) Check() error {
	switch {
	case !slices.Contains(catalog.Kinds, o.Kind):
		return fmt.Errorf("there is no kind of stage %q; choose one of %s", o.Kind, Kinds())
	case !names.MatchString(o.Name) || len(o.Name) > 40:
		return fmt.Errorf("%q cannot be the name of a plugin: take at most 40 lower-case letters, digits and hyphens, a letter first, such as my-%s", o.Name, o.Kind)
	case o.Lang != Go && o.Lang != Python:
		return fmt.Errorf("there are no templates in %q; choose %s or %s", o.Lang, Go, Python)
	}
	return nil
}

// Kinds lists the kinds of stages, for people.
func Kinds() string {
	all := make([]string, len(catalog.Kinds))
	for i, k := range catalog.Kinds {
		all[i] = string(k)
	}
	return strings.Join(all, ", ")
}

// Write writes a project into a folder, which must be empty or not there yet, and returns the
// paths of its files, sorted.
func Write(dir string, o Options) ([]string, error) {
	files, err := Files(o)
	if err != nil {
		return nil, err
	}
	if there, err := os.ReadDir(dir); err == nil && len(there) > 0 {
		return nil, fmt.Errorf("the folder %s is there already, and it is not empty: choose another name, or another place", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var paths []string
	for path, file := range files {
		paths = append(paths, path)
		to := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(to, file.Content, file.Mode); err != nil {
			return nil, err
		}
	}
	slices.Sort(paths)
	return paths, nil
}
