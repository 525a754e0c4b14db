package journal

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestMark: only a manifest that this user's racflow wrote counts as the user's own.
func TestMark(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	dir := filepath.Join(t.TempDir(), "run-000001")
	must.Do(t, os.Mkdir(dir, 0o700))
	mine := func(m Manifest) bool {
		t.Helper()
		must.Do(t, m.Write(dir, false))
		got, err := ReadManifest(dir)
		must.Do(t, err)
		return got.Mine
	}
	m := Manifest{ID: "run-000001", File: "/p.hcl", Stages: []ManifestStage{{Stage: "sample.s", Resolved: map[string]any{"n": 1 << 60, "f": 0.1, "mark": "x"}}}}
	if mine(m) {
		t.Error("one that another process describes")
	}
	m.Mine = true
	if !mine(m) {
		t.Error("the user's own")
	}
	text, err := os.ReadFile(filepath.Join(dir, name))
	must.Do(t, err)
	unsealed := bytes.Replace(text[:bytes.LastIndex(text, []byte(",\n  \"sum\""))], []byte("/p.hcl"), []byte("/q.hcl"), 1)
	must.Do(t, os.WriteFile(filepath.Join(dir, name), SealFile(append(unsealed, "\n}"...)), 0o600))
	if got, err := ReadManifest(dir); err != nil || got.File != "/q.hcl" || got.Mine {
		t.Errorf("a changed one: %+v, %v", got, err)
	}
	mine(m)
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	if got, err := ReadManifest(dir); err != nil || got.Mine {
		t.Errorf("another user's: %v", err)
	}
	var all sync.WaitGroup
	keys := make([][]byte, 8)
	for i := range keys { // both begin their first runs at the same time
		all.Go(func() { keys[i], _ = newKey() })
	}
	all.Wait()
	for _, key := range keys {
		if len(key) == 0 || !bytes.Equal(key, keys[0]) {
			t.Errorf("the keys are %x", keys)
		}
	}
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, name)) // a file
	if mine(m) {
		t.Error("without a place for the key")
	}
}
