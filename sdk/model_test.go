package sdk

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestModelDir(t *testing.T) {
	models := t.TempDir()
	t.Setenv(ModelsVariable, models)
	for name, want := range map[string]string{
		"minilm":                filepath.Join(models, "minilm"),
		"bge-small-en-v1.5":     filepath.Join(models, "bge-small-en-v1.5"),
		"":                      "",
		"..":                    "",
		".hidden":               "",
		"../minilm":             "",
		"a/b":                   "",
		`a\b`:                   "",
		"a\n":                   "",
		strings.Repeat("a", 97): "",
	} {
		dir, err := ModelDir(name)
		if dir != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", name, dir, err, want)
		}
	}
}

func TestFindModel(t *testing.T) {
	models, project := t.TempDir(), t.TempDir()
	t.Setenv(ModelsVariable, models)
	for _, dir := range []string{filepath.Join(models, "pulled"), filepath.Join(models, "both"), filepath.Join(project, "both"), filepath.Join(project, "own model")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"pulled":    filepath.Join(models, "pulled"),
		"both":      filepath.Join(project, "both"), // a folder takes precedence
		"own model": filepath.Join(project, "own model"),
	} {
		if dir, err := FindModel(Path(filepath.Join(project, name))); dir != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", name, dir, err, want)
		}
	}
	for name, want := range map[string]string{"absent": "racflow model pull absent", "no name": "there is no folder"} {
		if dir, err := FindModel(Path(filepath.Join(project, name))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %q, %v, want %q", name, dir, err, want)
		}
	}
}
