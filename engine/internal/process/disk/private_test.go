package disk

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/racflow/racflow/sdk/support"
)

func TestFolders(t *testing.T) {
	mode := func(dir string) fs.FileMode {
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	wide := filepath.Join(root, "knowledge")
	if err := os.Mkdir(wide, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(wide, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Join(wide, "k", "deep"), wide} {
		if err := MakeBelow(root, dir); err != nil {
			t.Fatal(err)
		}
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
			if err := WriteFile(path, []byte(content), sync); err != nil {
				t.Fatal(err)
			}
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

// TestTemp: a folder is removed by its owner, or by a process that starts once its owner is dead; nothing else is touched.
func TestTemp(t *testing.T) {
	root, elsewhere := t.TempDir(), t.TempDir()
	if f, err := support.OpenLock(filepath.Join(elsewhere, "probe"), os.O_RDWR|os.O_CREATE, FileMode); err != nil {
		t.Skip(err)
	} else if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	there := func(path string) bool {
		_, err := os.Lstat(path)
		return err == nil
	}
	folder := func(in, name string, locked bool) string {
		dir := filepath.Join(in, name)
		if err := os.MkdirAll(filepath.Join(dir, "plugin-dir1"), 0o700); err != nil {
			t.Fatal(err)
		}
		if locked {
			if err := os.WriteFile(filepath.Join(dir, lockName), nil, FileMode); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	temp := func() (string, func()) {
		t.Helper()
		dir, remove, err := TempFolder(root)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", dir, info, err)
		}
		return dir, remove
	}
	alive, remove := temp()
	stay := []string{
		alive,
		folder(root, prefix()+"new", false), // a process is about to lock it
		folder(root, "racflow-4294967294.x", true),
		folder(root, "plugin-dir2", true),
		folder(elsewhere, "theirs", true),
	}
	link := filepath.Join(root, prefix()+"link")
	if err := os.Symlink(stay[len(stay)-1], link); err != nil {
		t.Fatal(err)
	}
	stay = append(stay, filepath.Join(elsewhere, "theirs", lockName), filepath.Join(elsewhere, "theirs", "plugin-dir1"))
	left := func() (n int) {
		all, err := filepath.Glob(filepath.Join(root, prefix()+"dead*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	const dead = maxRemoved + 3
	for i := range dead {
		folder(root, fmt.Sprint(prefix(), "dead", i), true)
	}
	sweep(root)
	if n := left(); n < dead-maxRemoved || n > dead-maxRemoved+1 { // the link may be one of those that are removed
		t.Errorf("%d of %d folders of dead processes are left by a start that removes at most %d", n, dead, maxRemoved)
	}
	sweep(root)
	if n := left(); n > 0 {
		t.Errorf("%d folders of dead processes are left", n)
	}
	for _, path := range stay {
		if !there(path) {
			t.Errorf("%s is gone", path)
		}
	}
	for range 2 { // once more does no harm
		remove()
	}
	if there(alive) {
		t.Error("a folder is left by its owner")
	}
	other := t.TempDir()
	dir := folder(other, prefix()+"dead", true)
	for range 2 { // the first start in a folder looks
		if _, remove, err := TempFolder(other); err != nil || there(dir) {
			t.Errorf("%v, or %s is left", err, dir)
		} else {
			remove()
		}
	}
	if _, _, err := TempFolder(filepath.Join(root, "none")); err == nil {
		t.Error("a folder was made in none")
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
