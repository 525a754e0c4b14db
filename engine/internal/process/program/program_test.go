package program

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// write makes files below a folder; content that is a script becomes executable.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path, mode := filepath.Join(dir, name), fs.FileMode(0o644)
		if strings.HasPrefix(content, "#!") {
			mode = 0o755
		}
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), mode), os.Chmod(path, mode)))
	}
}

func at(t *testing.T, path string) Program {
	t.Helper()
	p, err := At(path)
	must.Do(t, err)
	return p
}

// TestCheck: which programs are safe to start, and why others are not. The folder is locked or given.
func TestCheck(t *testing.T) {
	const script = "racflow-plugin-mine/racflow-plugin-mine"
	do := func(err error) func(*testing.T) {
		return func(t *testing.T) {
			must.Do(t, err)
		}
	}
	for name, c := range map[string]struct {
		change        func(dir string) error
		given, locked string // the error; empty: none
		same          bool   // the hash is unchanged
	}{
		"as it was":         {func(string) error { return nil }, "", "", true},
		"another module":    {func(dir string) error { return os.WriteFile(dir+"/lib/a.py", []byte("b = 2"), 0o644) }, "", "is not the program that was locked", false},
		"one byte":          {func(dir string) error { return os.WriteFile(dir+"/racflow-plugin-mine", []byte("#!/bin/sl\n"), 0o755) }, "", "is not the program that was locked", false},
		"a new module":      {func(dir string) error { return os.WriteFile(dir+"/lib/c.py", nil, 0o644) }, "", "is not the program that was locked", false},
		"a module is gone":  {func(dir string) error { return os.Remove(dir + "/lib/a.py") }, "", "is not the program that was locked", false},
		"a module executes": {func(dir string) error { return os.Chmod(dir+"/lib/a.py", 0o755) }, "", "is not the program that was locked", false},
		"compiled modules":  {func(dir string) error { return os.Mkdir(dir+"/lib/__pycache__", 0o755) }, "", "__pycache__ was not there when the plugin was installed", true},
		"an environment":    {func(dir string) error { return os.Symlink("/usr", dir+"/.venv") }, "", ".venv was not there when the plugin was installed", true},
		"a link inside":     {func(dir string) error { return os.Symlink("a.py", dir+"/lib/b.py") }, "", "is not the program that was locked", false},
		"a link outside":    {func(dir string) error { return os.Symlink("../../../..", dir+"/lib/b.py") }, "leads out of the plugin's folder", "leads out of the plugin's folder", false},
		"an absolute link":  {func(dir string) error { return os.Symlink(dir+"/lib/a.py", dir+"/lib/b.py") }, "leads out of the plugin's folder", "leads out of the plugin's folder", false},
		"a link to nothing": {func(dir string) error { return os.Symlink("none", dir+"/lib/b.py") }, "leads nowhere", "leads nowhere", false},
		"a link to what is not hashed": {func(dir string) error {
			return errors.Join(os.Mkdir(dir+"/.git", 0o755), os.WriteFile(dir+"/.git/x", nil, 0o644), os.Symlink("../.git/x", dir+"/lib/b.py"))
		}, "does not belong to the plugin", "was not there when the plugin was installed", false},
		"for everybody":        {func(dir string) error { return os.Chmod(dir+"/lib/a.py", 0o666) }, "may be changed by everybody", "may be changed by others", true},
		"a folder for all":     {func(dir string) error { return os.Chmod(dir+"/lib", 0o777) }, "may be changed by everybody", "may be changed by others", true},
		"the folder around it": {func(dir string) error { return os.Chmod(filepath.Dir(dir), 0o777) }, "may be changed by everybody", "may be changed by others", true},
		"a shared folder":      {func(dir string) error { return os.Chmod(filepath.Dir(dir), 0o777|fs.ModeSticky) }, "", "", true},
		"for a group":          {func(dir string) error { return os.Chmod(dir+"/lib/a.py", 0o664) }, "", "may be changed by others", true},
		"not executable":       {func(dir string) error { return os.Chmod(dir+"/racflow-plugin-mine", 0o644) }, "may not be executed; try: chmod +x", "may not be executed", false},
		"no program":           {func(dir string) error { return os.Remove(dir + "/racflow-plugin-mine") }, "holds no program named racflow-plugin-mine", "holds no program", false},
		"a folder as program": {func(dir string) error {
			return errors.Join(os.Remove(dir+"/racflow-plugin-mine"), os.Mkdir(dir+"/racflow-plugin-mine", 0o755))
		}, "is no file that could be executed", "is no file", false},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write(t, root, map[string]string{script: "#!/bin/sh\n", "racflow-plugin-mine/lib/a.py": "a = 1", "racflow-plugin-mine/README": ""})
			dir := filepath.Join(root, "racflow-plugin-mine")
			given := at(t, dir)
			hash, err := given.Check()
			do(err)(t)
			locked := given
			locked.Origin, locked.Hash = Locked, hash
			if _, err := locked.Check(); err != nil {
				t.Fatal(err)
			}
			do(c.change(dir))(t)
			for _, one := range []struct {
				program Program
				want    string
			}{{given, c.given}, {locked, c.locked}} {
				got, err := one.program.Check()
				switch {
				case one.want == "" && err != nil, one.want != "" && (err == nil || !strings.Contains(err.Error(), one.want)):
					t.Errorf("%s: %v, want %q", one.program.Origin, err, one.want)
				case err == nil && (got == hash) != c.same:
					t.Errorf("%s: the hash was %s and is %s", one.program.Origin, hash, got)
				}
			}
		})
	}
}

// A single file may be named by a link.
func TestCheckFile(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"racflow-plugin-a": "#!/bin/sh\n"})
	must.Do(t, os.Symlink("racflow-plugin-a", dir+"/racflow-plugin-b"))
	want, err := HashFile(dir + "/racflow-plugin-a")
	must.Do(t, err)
	for _, name := range []string{"a", "b"} {
		if got, err := at(t, dir+"/racflow-plugin-"+name).Check(); err != nil || got != FileHash+want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	link := at(t, dir+"/racflow-plugin-b")
	link.Origin = Locked
	if _, err := link.Check(); err == nil || !strings.Contains(err.Error(), "is a symbolic link") {
		t.Errorf("a locked link: %v", err)
	}
	if _, err := at(t, dir+"/racflow-plugin-c").Check(); err == nil || !strings.Contains(err.Error(), "there is no program "+dir) {
		t.Errorf("none: %v", err)
	}
	if _, err := At(dir + "/mine"); err == nil || !strings.Contains(err.Error(), "racflow-plugin-NAME") {
		t.Errorf("another name: %v", err)
	}
}

// Anybody can compute the hash of a folder with sha256sum.
func TestTreeHash(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{"racflow-plugin-m/racflow-plugin-m": "#!x\n", "racflow-plugin-m/b/a.py": "", "racflow-plugin-m/.git/HEAD": "left out"})
	// printf '%s  %s  %s\n' $(sha256sum ...) | sort | sha256sum
	const want = "tree:1868645c6d44d543db1ba7ea96bf926034ba2e2d05ecdbe812dbbaef6c250d4c"
	if got, err := at(t, root+"/racflow-plugin-m").Check(); err != nil || got != want {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestFind(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	write(t, first, map[string]string{"racflow-plugin-acme": "#!", "racflow-plugin-": "", "readme": ""})
	write(t, second, map[string]string{"racflow-plugin-acme": "#!", "racflow-plugin-tree/racflow-plugin-tree": "#!"})
	again := filepath.Join(t.TempDir(), "link")
	must.Do(t, os.Symlink(first, again))
	found, err := Find([]string{first, filepath.Join(first, "none"), second, again, first})
	want := []Program{
		{Name: "acme", Path: first + "/racflow-plugin-acme", Origin: Given}, {Name: "acme", Path: second + "/racflow-plugin-acme", Origin: Given},
		{Name: "tree", Path: second + "/racflow-plugin-tree/racflow-plugin-tree", Folder: second + "/racflow-plugin-tree", Origin: Given},
	}
	if diff := cmp.Diff(want, found); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := Find([]string{first + "/readme"}); err == nil || !strings.Contains(err.Error(), "is not a folder") {
		t.Errorf("a file: %v", err)
	}
}

func TestLink(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(t.TempDir(), "config"))
	t.Setenv("HOME", t.TempDir()) // for systems that ignore the former
	if all, err := Links(); err != nil || len(all) > 0 {
		t.Fatalf("at first: %v, %v", all, err)
	}
	root := t.TempDir()
	write(t, root, map[string]string{"racflow-plugin-m/racflow-plugin-m": "#!", "racflow-plugin-m/a.py": ""})
	p := at(t, root+"/racflow-plugin-m")
	p.Project = root
	must.Do(t, Link(p))
	all := must.Get(Links())(t)
	must.Equal(t, "links", []Program{{Name: "m", Path: p.Path, Folder: p.Folder, Origin: Linked, Project: root}}, all, cmpopts.IgnoreFields(Program{}, "Hash"))
	if _, err := all[0].Check(); err != nil {
		t.Error(err)
	}
	write(t, root, map[string]string{"racflow-plugin-m/a.py": "changed"})
	if _, err := all[0].Check(); err == nil || !strings.Contains(err.Error(), "racflow plugin install "+root+" --dev") {
		t.Errorf("a changed one: %v", err)
	}
	if err := errors.Join(Link(p), Unlink("m")); err != nil {
		t.Error(err)
	}
	if err := Unlink("m"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("twice: %v", err)
	}
	if err := Link(at(t, root+"/racflow-plugin-none")); err == nil {
		t.Error("what is not there was linked")
	}
}

// A program is read once as long as it looks the same. With a link in place of a module it is another
// program.
func TestReadOnce(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{"racflow-plugin-m/racflow-plugin-m": "#!", "racflow-plugin-m/a.py": "a = 1", "racflow-plugin-m/b.py": "a = 1"})
	p := at(t, root+"/racflow-plugin-m")
	module, past := root+"/racflow-plugin-m/a.py", time.Now().Add(-time.Hour)
	for _, name := range []string{"racflow-plugin-m", "a.py", "b.py"} {
		must.Do(t, os.Chtimes(filepath.Join(root, "racflow-plugin-m", name), past, past))
	}
	var hashes []string
	for i, change := range []func() error{
		func() error { return nil },
		func() error {
			return errors.Join(os.WriteFile(module, []byte("a = 2"), 0o644), os.Chtimes(module, past, past))
		},
		func() error { return os.Chtimes(module, past, past.Add(time.Second)) },
		func() error { return errors.Join(os.Remove(module), os.Symlink("b.py", module)) },
	} {
		err := change()
		hash, bad := p.Check()
		if err := errors.Join(err, bad); err != nil {
			t.Fatal(i, err)
		}
		hashes = append(hashes, hash)
	}
	if hashes[0] != hashes[1] || hashes[1] == hashes[2] || hashes[2] == hashes[3] || hashes[3] == hashes[0] {
		t.Errorf("hashes %v", hashes)
	}
}

// A file that was written just now is read again each time: it may change and look the same.
func TestFreshProgram(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "racflow-plugin-m")
	p, now := Program{Name: "m", Path: path, Origin: Given}, time.Now().Add(time.Hour) // however busy the machine is
	hashes := map[string]bool{}
	for _, content := range []string{"#!/a", "#!/b"} {
		must.Do(t, errors.Join(os.WriteFile(path, []byte(content), 0o755), os.Chtimes(path, now, now)))
		hash, err := p.Check()
		must.Do(t, err)
		hashes[hash] = true
	}
	if len(hashes) != 2 {
		t.Error("a change was not seen")
	}
}
