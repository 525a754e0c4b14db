package folder

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// maxFile bounds a configuration file. They have some kB, but for lists of labels.
const maxFile = 4 << 20

// readJSON decodes a file of the folder into v. Where the file or a field is missing, v
// stays as it is. found is false where the file is missing.
func readJSON(dir, name string, v any) (found bool, err error) {
	path := filepath.Join(dir, filepath.FromSlash(name))
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read the model's configuration: %w", err)
	case !info.Mode().IsRegular():
		return false, fmt.Errorf("read the model's configuration: %s is not a file", path)
	case info.Size() > maxFile:
		return false, fmt.Errorf("%s: more than %d bytes: not the configuration of a model", path, maxFile)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return false, fmt.Errorf("read the model's configuration: %w", err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return false, fmt.Errorf("%s: %.300v", path, err)
	}
	return true, nil
}

// unsupported is the error of a model that cannot be used. What the file says may be long.
func unsupported(dir, name, reason string, args ...any) error {
	return fmt.Errorf("%s: model is not supported: %.500s", filepath.Join(dir, filepath.FromSlash(name)), fmt.Sprintf(reason, args...))
}

// below returns the folder that a configuration names, which must be in dir.
func below(dir, from, path string) (string, error) {
	if path == "" {
		return dir, nil
	}
	if !filepath.IsLocal(filepath.FromSlash(path)) {
		return "", unsupported(dir, from, "path %q leads out of the model's folder", path)
	}
	return filepath.Join(dir, filepath.FromSlash(path)), nil
}
