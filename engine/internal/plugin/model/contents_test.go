package model

import (
	"testing"
)

// folder writes a model's files.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		modelWrite(t, dir, name, content)
	}
	return dir
}
