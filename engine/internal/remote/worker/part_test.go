package worker

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Workers that share a folder share the files that runs brought, and nothing else.
func TestFolderShared(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	open := func() *folder {
		t.Helper()
		return must.Get(openFolder(state))(t)
	}
	first, second := open(), open()
	if first.own == second.own || first.Files() != second.Files() {
		t.Fatalf("%s and %s, files in %s and %s", first.own, second.own, first.Files(), second.Files())
	}
	dir := must.Get(first.Run("abc"))(t)
	other := must.Get(second.Run("abc"))(t)
	if dir == other {
		t.Fatalf("both work in %s", dir)
	}
	must.Do(t, first.Remove("abc"))
	if there(dir) || !there(other) {
		t.Errorf("removed for one worker: %s is there: %t; the other's: %t", dir, there(dir), there(other))
	}
	if info, err := os.Stat(first.own); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := second.held.Close(); err != nil { // as if it was killed
		t.Fatal(err)
	}
	third := open()
	if third.own != second.own || there(other) {
		t.Errorf("%s: the part of one that died, %s, does not serve again, or is not clear", third.own, second.own)
	}
	for _, f := range []*folder{first, third} {
		if err := f.close(); err != nil {
			t.Error(err)
		}
	}
	if again := open(); again.own != first.own {
		t.Errorf("a part that was given back is not used again: %s", again.own)
	}
}
