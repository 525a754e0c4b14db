package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestNoBytecode loads a module as a plugin would. No file may appear beside it: otherwise the
// installed plugin would differ from the lock.
func TestNoBytecode(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "module.py"), []byte("x = 1\n"), 0o600))
	load := exec.CommandContext(t.Context(), python, "-c", "import sys; sys.path.insert(0, sys.argv[1]); import module", dir)
	load.Env = environment(nil, false)
	if out, err := load.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "__pycache__")); err != nil || len(left) > 0 {
		t.Errorf("left beside the module: %v, %v", left, err)
	}
}
