package sdk

import (
	"fmt"
	"os"
	"path/filepath"
)

// ModelsVariable is the environment variable that names the folder of models.
const ModelsVariable = "RACFLOW_MODELS"

// ModelDir returns the folder where a model's files are looked for: below
// RACFLOW_MODELS where that is set, else in the user's cache folder. Whether
// it exists is for the caller to find out.
func ModelDir(name string) (string, error) {
	if dir := os.Getenv(ModelsVariable); dir != "" {
		return filepath.Join(dir, name), nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder for models: set %s: %w", ModelsVariable, err)
	}
	return filepath.Join(cache, "racflow", "models", name), nil
}
