package sdk

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// ModelsVariable is the environment variable that names the folder of models.
const ModelsVariable = "RACFLOW_MODELS"

// ModelName is the pattern of a model's name on this machine, which is also the name of a folder.
var ModelName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,95}$`)

// ModelDir returns the folder of a model's files: below RACFLOW_MODELS if that is set, otherwise in
// the user's cache folder. The caller finds out whether the folder exists. The name has to match
// ModelName.
func ModelDir(name string) (string, error) {
	if !ModelName.MatchString(name) {
		return "", fmt.Errorf("%q is not the name of a model: use up to 96 letters, digits, dots, hyphens and underscores, with a letter or digit first", name)
	}
	if dir := os.Getenv(ModelsVariable); dir != "" {
		return filepath.Join(dir, name), nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder for models: set %s: %w", ModelsVariable, err)
	}
	return filepath.Join(cache, "racflow", "models", name), nil
}

// FindModel returns the folder of the model that an argument names. The argument is a folder, or the
// name under which `racflow model pull` keeps a model. The engine has made the argument absolute, so
// its last element is that name.
func FindModel(model Path) (string, error) {
	if isFolder(string(model)) {
		return string(model), nil
	}
	name := filepath.Base(string(model))
	dir, err := ModelDir(name)
	switch {
	case err != nil:
		return "", fmt.Errorf("there is no folder %s", model)
	case !isFolder(dir):
		return "", fmt.Errorf("there is neither a folder %s nor a model %s on this machine: racflow model pull %s brings one of that name, and racflow model list shows the names", model, name, name)
	}
	return dir, nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
