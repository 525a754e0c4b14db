package generation

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/sdk/sdktest/must"
	"github.com/racflow/racflow/sdk/support"
)

// collection writes the files of a collection.
func collection(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"log": "log", "0000000000000001.segment": "seg-1", "0000000000000002.segment": "seg-2", "lock": "7", "log.new": "x"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return dir
}

// A copy has the log and the segments, and stays as it is, whatever a writer does then.
func TestCopy(t *testing.T) {
	dir, to := collection(t), filepath.Join(t.TempDir(), "copy")
	names := must.Get(CopyFolder(dir, to))(t)
	if diff := cmp.Diff([]string{"0000000000000001.segment", "0000000000000002.segment", "log"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	f := must.Get(os.OpenFile(filepath.Join(dir, "log"), os.O_WRONLY|os.O_APPEND, 0))(t)
	_, err := f.WriteString("more")
	must.Do(t, errors.Join(err, f.Close(), os.Remove(filepath.Join(dir, "0000000000000001.segment"))))
	for name, want := range map[string]string{"log": "log", "0000000000000001.segment": "seg-1", "0000000000000002.segment": "seg-2"} {
		if got := string(must.Get(os.ReadFile(filepath.Join(to, name)))(t)); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestCopyRefuses(t *testing.T) {
	if _, err := CopyFolder(filepath.Join(t.TempDir(), "none"), filepath.Join(t.TempDir(), "copy")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
	dir := collection(t)
	lock := must.Get(support.OpenLock(filepath.Join(dir, "lock"), os.O_RDWR, 0))(t)
	defer lock.Close()
	synctest.Test(t, func(t *testing.T) {
		if _, err := CopyFolder(dir, filepath.Join(t.TempDir(), "copy")); !errors.Is(err, support.ErrBusy) {
			t.Errorf("a writer is at work: %v", err)
		}
	})
}

func TestName(t *testing.T) {
	for collection, want := range map[string]string{"k-0a_1": "k-0a_1", "Kä": "%4B%C3%A4", ".a.b": "%2Ea.b", "a/b": "a%2Fb"} {
		if got := FolderName(collection); got != want {
			t.Errorf("%s: %s", collection, got)
		}
	}
}
