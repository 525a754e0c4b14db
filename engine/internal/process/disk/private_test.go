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

// TestOwnFiles: files of other users and links are refused, except in folders that are skipped.
func TestOwnFiles(t *testing.T) {
	elsewhere := t.TempDir()
	for name, c := range map[string]struct {
		at    string
		make  func(path string) error
		holds bool // the file is allowed
	}{
		"a file":   {"a/f", func(path string) error { return os.WriteFile(path, nil, 0o600) }, true},
		"a folder": {"a/b", func(path string) error { return os.Mkdir(path, 0o700) }, true},
		"a hard link": {"a/f", func(path string) error {
			must.Do(t, os.WriteFile(path+"1", nil, 0o600))
			return os.Link(path+"1", path)
		}, true},
		"a link":               {"a/l", func(path string) error { return os.Symlink(elsewhere, path) }, false},
		"a link to nothing":    {"a/l", func(path string) error { return os.Symlink("none", path) }, false},
		"a link within":        {"a/l", func(path string) error { return os.Symlink(".", path) }, false},
		"a link at the top":    {"l", func(path string) error { return os.Symlink(elsewhere, path) }, false},
		"a pipe":               {"a/p", func(path string) error { return syscall.Mkfifo(path, 0o600) }, false},
		"where nobody looks":   {"skipped/l", func(path string) error { return os.Symlink(elsewhere, path) }, true},
		"instead of a skipped": {"a/skipped", func(path string) error { return os.Symlink(elsewhere, path) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			path := filepath.Join(root, c.at)
			must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
			must.Do(t, c.make(path))
			link := filepath.Join(t.TempDir(), "root")
			must.Do(t, os.Symlink(root, link))
			for _, dir := range []string{root, link} {
				if err := OwnFiles(dir, func(inside string) bool { return filepath.Base(inside) == "skipped" }); (err == nil) != c.holds {
					t.Errorf("%s: %v", dir, err)
				}
			}
			if err := MakeBelow(root, path); (err == nil) != (c.holds && name != "a file" && name != "a hard link" && name != "where nobody looks") {
				t.Errorf("a folder there: %v", err)
			}
		})
	}
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	if err := OwnFiles(filepath.Join(elsewhere, "none"), nil); err != nil {
		t.Error(err)
	}
}
