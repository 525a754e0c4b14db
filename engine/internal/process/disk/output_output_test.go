//go:build unix

package disk_test

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	must.Do(t, os.WriteFile(path, []byte(content), 0o600))
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	must.Do(t, err)
	return string(content)
}

func open(t *testing.T, path string) *disk.Output {
	t.Helper()
	f, err := disk.OpenOutput(path, nil)
	must.Do(t, err)
	return f
}

func say(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}

// finish ends the writing, with Commit or as a process that ends early.
func finish(t *testing.T, f *disk.Output, commit bool) {
	t.Helper()
	if commit {
		if err := f.Commit(); err != nil {
			t.Error(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func absent(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); err == nil {
		t.Errorf("%s is there", path)
	}
}

func TestOldOrNew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	part := path + ".part"

	f := open(t, path)
	absent(t, path)
	finish(t, f, false)
	absent(t, part) // nothing was written

	f = open(t, path)
	finish(t, f, true)
	if got := read(t, path); got != "" {
		t.Errorf("nothing, committed: %q", got)
	}
	absent(t, part)

	write(t, path, "old")
	f = open(t, path)
	say(t, f, "a longer new ")
	if got := read(t, path); got != "old" {
		t.Errorf("while it is written: %q", got)
	}
	if got := read(t, part); got != "a longer new " || f.Partial() != part {
		t.Errorf("the partial file %s holds %q", f.Partial(), got)
	}
	finish(t, f, false)
	if got := read(t, path) + " " + read(t, part); got != "old a longer new " {
		t.Errorf("after an early end: %q", got)
	}

	f = open(t, path)
	if left := f.Left(); left != int64(len("a longer new ")) {
		t.Errorf("%d bytes are left", left)
	}
	finish(t, f, false)
	if got := read(t, part); got != "a longer new " {
		t.Errorf("who writes nothing takes partial results away: %q", got)
	}

	f = open(t, path)
	say(t, f, "new")
	if err := f.Commit(); err != nil || f.Partial() != "" {
		t.Errorf("partial %q, %v", f.Partial(), err)
	}
	finish(t, f, false)
	if got := read(t, path); got != "new" {
		t.Errorf("after it is complete: %q", got)
	}
	absent(t, part)
}

func TestOneWriter(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	must.Do(t, os.Symlink("out", filepath.Join(dir, "link")))
	f := open(t, path)
	for _, name := range []string{path, filepath.Join(dir, "link"), dir + "/../" + filepath.Base(dir) + "/out"} {
		if _, err := disk.OpenOutput(name, nil); err == nil || !strings.Contains(err.Error(), "another process is writing "+name) {
			t.Errorf("a second writer of %s: %v", name, err)
		}
	}
	say(t, f, "new")
	finish(t, f, true)
	finish(t, open(t, path), false)
	if got := read(t, path); got != "new" {
		t.Errorf("got %q", got)
	}
}

// TestPartIsTaken: if a person has moved the partial file away, another file in its place is not
// mistaken for it.
func TestPartIsTaken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	write(t, path, "old")
	f := open(t, path)
	say(t, f, "new")
	must.Do(t, os.Remove(path+".part"))
	other := open(t, path)
	say(t, other, "other")
	if err := f.Commit(); err == nil || !strings.Contains(err.Error(), "removed or replaced") {
		t.Errorf("committed: %v", err)
	}
	finish(t, f, false)
	if got := read(t, path); got != "old" {
		t.Errorf("got %q", got)
	}
	finish(t, other, true)
	if got := read(t, path); got != "other" {
		t.Errorf("got %q", got)
	}
}

func TestPermissionsAndLinks(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, folder := range []string{"real", "deep/er"} {
		must.Do(t, os.MkdirAll(in(folder), 0o700))
	}
	for from, to := range map[string]string{"link": "real/file", "second": "link", "new": "real/none", "folder": "deep/er", "up": "folder/../up"} {
		must.Do(t, os.Symlink(to, in(from)))
	}
	for name, target := range map[string]string{"plain": "plain", "second": "real/file", "new": "real/none", "up": "deep/up"} {
		if name != "new" {
			write(t, in(target), "old")
			must.Do(t, os.Chmod(in(target), 0o640))
		}
		f := open(t, in(name))
		say(t, f, name)
		if part := f.Partial(); part != in(target)+".part" {
			t.Errorf("%s is written to %s", name, part)
		}
		if at := disk.OutputTarget(in(name), nil); at != f.Target() || filepath.Base(at) != filepath.Base(target) || f.Left() != 0 {
			t.Errorf("%s leads to %q, and %q", name, at, f.Target())
		}
		finish(t, f, true)
		info, err := os.Lstat(in(target))
		must.Do(t, err)
		if read(t, in(target)) != name || !info.Mode().IsRegular() || name != "new" && info.Mode().Perm() != 0o640 {
			t.Errorf("%s: %v, %q", name, info.Mode(), read(t, in(target)))
		}
		if link, _ := os.Lstat(in(name)); name != target && link.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%s is no link any more", name)
		}
	}
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"input", "given.part"} {
		write(t, in(name), "precious")
	}
	for _, err := range []error{
		os.Mkdir(in("shut"), 0o500), os.Mkdir(in("taken.part"), 0o700), os.Symlink("round", in("round")),
		os.WriteFile(in("readonly"), nil, 0o400), os.Symlink("input", in("linked.part")),
	} {
		must.Do(t, err)
	}
	tests := map[string]struct {
		want string
		root bool // root may do so
	}{
		"input":           {"would write over what this run reads", false},
		"given":           {"would write over what this run reads", false},
		"no/such/folder":  {"no such file or directory", false},
		"shut":            {"it is a folder", false},
		"shut/out":        {"choose a folder that you can write to", true},
		"readonly":        {"choose another file", true},
		"taken":           {"taken.part is in the way", false},
		"linked":          {"would write over what this run reads", false},
		"round":           {"symbolic links follow one another", false},
		"input/below/out": {"not a directory", false},
	}
	for name, test := range tests {
		if test.root && os.Geteuid() == 0 {
			continue
		}
		f, err := disk.OpenOutput(in(name), nil, in("input"), in("given.part"), "-", in("absent"))
		if err == nil {
			t.Errorf("%s is opened: %+v", name, f)
		} else if text := err.Error(); !strings.Contains(text, test.want) || !strings.Contains(text, name) {
			t.Errorf("%s: %v", name, err)
		}
		absent(t, in(name)+".part.part")
	}
	if got := read(t, in("input")) + read(t, in("given.part")); got != "preciousprecious" {
		t.Errorf("inputs are %q", got)
	}
}

func TestStreams(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	write(t, log, "before ")
	stdout, err := os.OpenFile(log, os.O_WRONLY|os.O_APPEND, 0)
	must.Do(t, err)
	defer stdout.Close()
	for _, name := range []string{"", "-", log} { // the last is the file to which the shell redirects
		f, err := disk.OpenOutput(name, stdout)
		must.Do(t, err)
		say(t, f, "x")
		finish(t, f, true)
	}
	if _, err := os.Stat("/dev/fd"); err == nil { // a descriptor that leads to a regular file
		f := open(t, "/dev/fd/"+strconv.Itoa(int(stdout.Fd())))
		say(t, f, "y")
		finish(t, f, true)
		if got := read(t, log); got != "before xxxy" {
			t.Errorf("got %q", got)
		}
	}
	fifo := filepath.Join(dir, "fifo")
	must.Do(t, syscall.Mkfifo(fifo, 0o600))
	both, err := os.OpenFile(fifo, os.O_RDWR, 0) // so that opening it does not block
	must.Do(t, err)
	defer both.Close()
	for _, name := range []string{fifo, os.DevNull} {
		f := open(t, name)
		say(t, f, "z")
		if f.Partial() != "" {
			t.Errorf("%s has a partial file", name)
		}
		finish(t, f, true)
		info, err := os.Stat(name)
		if err != nil || info.Mode().IsRegular() {
			t.Errorf("%s has become %v, %v", name, info.Mode(), err)
		}
	}
	one := make([]byte, 1)
	if _, err := both.Read(one); err != nil || string(one) != "z" {
		t.Errorf("the pipe has %q, %v", one, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
}
