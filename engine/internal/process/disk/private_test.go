package disk

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

func TestFolders(t *testing.T) {
	mode := func(dir string) fs.FileMode {
		info, err := os.Stat(dir)
		must.Do(t, err)
		return info.Mode().Perm()
	}
	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	wide := filepath.Join(root, "knowledge")
	must.Do(t, os.Mkdir(wide, 0o700))
	must.Do(t, os.Chmod(wide, 0o755))
	for _, dir := range []string{filepath.Join(wide, "k", "deep"), wide} {
		must.Do(t, MakeBelow(root, dir))
	}
	for _, dir := range []string{wide, filepath.Join(wide, "k"), filepath.Join(wide, "k", "deep")} {
		if got := mode(dir); got != 0o700 {
			t.Errorf("%s has mode %o", dir, got)
		}
	}
	if got := mode(root); got != 0o755 {
		t.Errorf("the root has mode %o: it may be anybody's folder", got)
	}
	elsewhere := filepath.Join(t.TempDir(), "a", "b")
	if err := MakeBelow(root, elsewhere); err != nil || mode(elsewhere) != 0o700 {
		t.Errorf("a folder elsewhere: %v, mode %o", err, mode(elsewhere))
	}
	if err := TightenFolder(filepath.Join(root, "none")); err != nil {
		t.Errorf("a folder that is not there: %v", err)
	}
}

func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, sync := range []bool{false, true} {
		for _, content := range []string{"a longer text", "short"} {
			must.Do(t, WriteFile(path, []byte(content), sync))
			got, err := os.ReadFile(path)
			if info, _ := os.Stat(path); err != nil || string(got) != content || info.Mode().Perm() != FileMode {
				t.Errorf("got %q, %v, %v", got, info, err)
			}
		}
	}
	if err := WriteFile(filepath.Join(path, "below a file"), nil, false); err == nil {
		t.Error("no error")
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestReadOnly(t *testing.T) {
	for _, err := range []error{&fs.PathError{Op: "mkdir", Err: fs.ErrPermission}, &fs.PathError{Op: "mkdir", Err: syscall.EROFS}} {
		if !ReadOnly(err) {
			t.Errorf("%v is not seen", err)
		}
	}
	if ReadOnly(nil) || ReadOnly(fs.ErrNotExist) {
		t.Error("other errors count as well")
	}
}
