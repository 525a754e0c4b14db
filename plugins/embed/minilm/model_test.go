package minilm

import (
	"os"
	"path/filepath"
	"testing"
)

// modelDir returns the folder of the model, or skips the test where there is none.
func modelDir(t testing.TB) string {
	models := os.Getenv("RACFLOW_MODELS")
	if models == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Skip("no model: set RACFLOW_MODELS to the folder that holds minilm/")
		}
		models = filepath.Join(cache, "racflow", "models")
	}
	dir := filepath.Join(models, "minilm")
	if _, err := os.Stat(filepath.Join(dir, "model.safetensors")); err != nil {
		t.Skipf("no model in %s: put it there or set RACFLOW_MODELS", dir)
	}
	return dir
}

func testModel(t testing.TB) *Model {
	t.Helper()
	m, err := Load(modelDir(t))
	if err != nil {
		t.Fatal(err)
	}
	return m
}
