package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/process/confine"
	"github.com/racflow/racflow/engine/internal/run/journal"
)

// simple is a pipeline file whose stages call nobody.
const simple = `
%s
knowledge "k" {
  source { path = "rows.tsv" }
  embed { use = "hashing" }
  store {}
}
pipeline "p" {
  input { path = %q }
  retrieve "n" { from = knowledge.k }
  sample "s" { use = %q }
  elect "e" { use = "majority" }
}
`

const simpleRows = "id\ttext\tlabel\n1\thello there\tgreet\n2\tbye now\tleave\n3\thello you\tgreet\n4\tbye bye\tleave\n"

// checkout makes a folder with a pipeline file, and with a plugin that leaves a mark when it starts
// without confinement.
func checkout(t *testing.T) (dir, mark string, run func(args ...string) (code int, text string)) {
	t.Helper()
	dir, mark = t.TempDir(), filepath.Join(t.TempDir(), "mark")
	write(t, dir, "rows.tsv", simpleRows)
	write(t, dir, "p.hcl", fmt.Sprintf(simple, "", "rows.tsv", "neighbours"))
	write(t, dir, "q.hcl", fmt.Sprintf(simple, "required_plugins {\n  x = { confined = false, write = [\""+filepath.Dir(mark)+"\"] }\n}", "rows.tsv", "x/y"))
	fine(t, os.Mkdir(filepath.Join(dir, "evil"), 0o700))
	fine(t, os.WriteFile(filepath.Join(dir, "evil", "racflow-plugin-x"), []byte("#!/bin/sh\necho > "+mark+"\nexit 1\n"), 0o700))
	environment := append(os.Environ(), trustVariable+"=", "XDG_CONFIG_HOME="+t.TempDir())
	return dir, mark, func(args ...string) (int, string) {
		t.Helper()
		c := racflow(t, dir, args...)
		c.Env = environment
		code, stdout, stderr := ran(t, c)
		return code, stdout + stderr
	}
}

// forged changes the manifest of a run, with its checksum, as a stranger can.
func forged(t *testing.T, dir string, change func(m map[string]any)) {
	t.Helper()
	path := filepath.Join(dir, ".racflow", "runs", "run-000001", "manifest.json")
	raw, err := os.ReadFile(path)
	fine(t, err)
	var m map[string]any
	fine(t, json.Unmarshal(raw, &m))
	delete(m, "sum")
	change(m)
	mark := m["mark"]
	delete(m, "mark")
	raw, err = json.MarshalIndent(m, "", "  ")
	fine(t, err)
	if mark != nil { // where racflow writes it
		raw = fmt.Appendf(bytes.TrimSuffix(raw, []byte("\n}")), ",\n  \"mark\": %q\n}", mark)
	}
	fine(t, os.WriteFile(path, journal.SealFile(raw), 0o600))
	if _, err := journal.ReadManifest(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
}

// TestStrangersRun: the run of another user is read, and nothing of it is started. One's own run is
// resumed without a question, except for flags that only the person who resumes it can vouch for.
func TestStrangersRun(t *testing.T) {
	dir, mark, racflow := checkout(t)
	if code, text := racflow("run", "--output", "out.tsv", "p.hcl"); code != 0 {
		t.Fatal(text)
	}
	if code, text := racflow("runs", "resume", "run-000001"); code != 0 {
		t.Errorf("the user's own run: %d, %s", code, text)
	}
	fine(t, os.Remove(filepath.Join(dir, ".racflow", "runs", "run-000001", "totals.json"))) // the run was cut off
	flags := func(of ...[2]string) (all []any) {
		for _, f := range of {
			all = append(all, map[string]any{"name": f[0], "value": f[1]})
		}
		return all
	}
	for name, change := range map[string]func(m map[string]any){
		"plugins": func(m map[string]any) {
			m["command"].(map[string]any)["flags"] = flags([2]string{"plugins", "evil"}, [2]string{"trust", "all"})
		},
		"nothing but a value": func(m map[string]any) {
			m["command"].(map[string]any)["flags"] = flags([2]string{"var", "url=http://127.0.0.1:9"})
		},
		"no mark":        func(m map[string]any) { delete(m, "mark") },
		"another mark":   func(m map[string]any) { m["mark"] = strings.Repeat("0", 64) },
		"another folder": func(m map[string]any) { m["command"].(map[string]any)["dir"] = "/" },
		"another file":   func(m map[string]any) { m["file"] = filepath.Join(dir, "q.hcl") },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, ".racflow", "runs", "run-000001", "manifest.json")
			before, err := os.ReadFile(path)
			fine(t, err)
			defer os.WriteFile(path, before, 0o600) //nolint:errcheck // the next test says so
			forged(t, dir, change)
			for _, id := range []string{"run-000001", "newest"} {
				if code, text := racflow("runs", "resume", id); code != exitFailed || !strings.Contains(text, "not marked as yours") {
					t.Errorf("it is resumed: %d, %s", code, text)
				}
			}
			if code, text := racflow("runs", "resume", "run-000001", "--", "--plugins=evil", "--trust"); code != exitFailed || !strings.Contains(text, "not marked as yours") {
				t.Errorf("it is resumed with plugins: %d, %s", code, text)
			}
			for _, args := range [][]string{{"runs", "list"}, {"runs", "show", "run-000001"}, {"explain", "run-000001", "1"}, {"report", "run-000001", "--output", "r.html"}} {
				if code, text := racflow(args...); code != 0 {
					t.Errorf("%q: %d, %s", args, code, text)
				}
			}
			if _, err := os.Stat(mark); err == nil {
				t.Error("the plugin was started")
			}
		})
	}
}

// TestStrangersValues: the values that stages allegedly chose reach no stage, unless the run is the
// user's own.
func TestStrangersValues(t *testing.T) {
	dir, _, racflow := checkout(t)
	if code, text := racflow("run", "--output", "out.tsv", "p.hcl"); code != 0 {
		t.Fatal(text)
	}
	forged(t, dir, func(m map[string]any) {
		delete(m, "mark")
		for _, s := range m["stages"].([]any) {
			s.(map[string]any)["resolved"] = map[string]any{"base_url": "http://127.0.0.1:9"}
		}
	})
	if code, text := racflow("run", "--resume=run-000001", "--output", "out.tsv", "p.hcl"); code != 0 {
		t.Errorf("%d: %s", code, text)
	}
}

// TestResumedFlags: flags that vouch for something must be given again, even for the user's own run.
func TestResumedFlags(t *testing.T) {
	command := &journal.ManifestCommand{Dir: "/d", Flags: []journal.ManifestFlag{{Name: "trust", Value: "all"}, {Name: "plugins", Value: "build"}, {Name: "limit", Value: "3"}}}
	m := journal.Manifest{ID: "run-000001", File: "/d/p.hcl", Command: command, Mine: true}
	if _, err := resuming(m, "/s", nil); err == nil || !strings.Contains(err.Error(), "racflow runs resume run-000001 -- --plugins=build") {
		t.Errorf("without: %v", err)
	}
	for _, more := range [][]string{{"--plugins=other"}, {"-plugins", "other"}} {
		got, err := resuming(m, "/s", more)
		if want := append([]string{"run", "p.hcl", "--resume=run-000001", "--state=/s", "--limit=3"}, more...); err != nil || !slices.Equal(got, want) {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
}

// TestUngrantedPlugin: a program of --plugins is started, but the permissions that the file gives it
// wait for the grant.
func TestUngrantedPlugin(t *testing.T) {
	if !confine.Supported {
		t.Skip("this system confines nothing")
	}
	_, mark, racflow := checkout(t)
	for _, verb := range []string{"validate", "plan", "run", "eval", "test", "doctor", "tune", "knowledge list"} {
		if _, text := racflow(append(strings.Fields(verb), "--plugins", "evil", "q.hcl")...); !strings.Contains(text, "exit status") {
			t.Errorf("%s does not start it: %s", verb, text)
		}
		if _, err := os.Stat(mark); err == nil {
			t.Fatalf("%s starts it without confinement", verb)
		}
	}
}

// TestLinkedState: a link, a pipe or another user's file in a state folder ends each command that
// would use it, before anything is written. The state folder itself may be a link.
func TestLinkedState(t *testing.T) {
	dir, _, racflow := checkout(t)
	state, victim := filepath.Join(dir, ".racflow"), t.TempDir()
	for _, at := range []string{"stages", "stages/p", "stages/p/s", "stages/p/s/deep", "stages/k/embed", "knowledge", "knowledge/k", "knowledge/k/deep", "runs", "runs/last", "pending", "cache", "cache/x", "vectors", "profiles", "plugins", "fitted", "fitted/x/y", "attached"} {
		for kind, make := range map[string]func(path string) error{
			"a link": func(path string) error { return os.Symlink(victim, path) }, "neither": func(path string) error { return syscall.Mkfifo(path, 0o600) },
			"owned": func(path string) error { return ownedByAnother(path) },
		} {
			if kind != "a link" && strings.Contains(at, "deep") || kind == "owned" && os.Geteuid() != 0 {
				continue
			}
			fine(t, os.RemoveAll(state))
			path := filepath.Join(state, filepath.FromSlash(at))
			fine(t, os.MkdirAll(filepath.Dir(path), 0o700))
			fine(t, make(path))
			verbs := [][]string{{"run", "p.hcl"}}
			if at == "cache" || at == "runs" {
				verbs = append(verbs, []string{"cache", "clear"}, []string{"runs", "remove", "run-000001"}, []string{"eval", "p.hcl"}, []string{"ask", "p.hcl", "hello"})
			}
			for _, args := range verbs {
				if code, text := racflow(args...); code != exitFailed || !strings.Contains(text, kind) {
					t.Errorf("%s is %s, and %q ends with %d: %s", at, kind, args, code, text)
				}
			}
		}
	}
	if left, err := os.ReadDir(victim); err != nil || len(left) != 0 {
		t.Errorf("through links it wrote %v, %v", left, err)
	}
	fine(t, os.RemoveAll(state))
	fine(t, os.Symlink(victim, state))
	if code, text := racflow("run", "p.hcl"); code != 0 {
		t.Errorf("the user's own link: %d, %s", code, text)
	}
}

// ownedByAnother makes a file of another user.
func ownedByAnother(path string) error {
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		return err
	}
	return os.Lchown(path, 12345, 12345)
}

// TestPipes: a pipe or device that the file names is reported at once; one that a person names is
// read.
func TestPipes(t *testing.T) {
	dir, _, racflow := checkout(t)
	fine(t, syscall.Mkfifo(filepath.Join(dir, "pipe.tsv"), 0o600))
	fine(t, syscall.Mkfifo(filepath.Join(dir, "pipe.md"), 0o600))
	for name, by := range map[string][2]string{
		"source": {`source { path = "rows.tsv"`, `source { path = "pipe.tsv"`}, "glob": {`source { path = "rows.tsv"`, `source { path = "*.tsv"`},
		"documents": {`source { path = "rows.tsv"`, `source { path = "pipe.md"`}, "input": {"input { path = \"rows.tsv\"", "input { path = \"pipe.tsv\""}, "device": {`source { path = "rows.tsv"`, `source { path = "/dev/zero"`},
		"labels": {"embed {", "labels { path = \"pipe.tsv\" }\n  embed {"}, "argument": {`{ use = "neighbours" }`, "{\n use = \"recorded\"\n config {\n path = \"pipe.tsv\"\n }\n }"},
		"decisions": {"embed {", "source {\n path = \"pipe.jsonl\"\n reviewed = true\n }\n  embed {"},
	} {
		if name == "decisions" {
			fine(t, syscall.Mkfifo(filepath.Join(dir, "pipe.jsonl"), 0o600))
		}
		text := fmt.Sprintf(simple, "", "rows.tsv", "neighbours")
		changed := strings.Replace(text, by[0], by[1], 1)
		if changed == text {
			t.Fatal(name)
		}
		write(t, dir, "pipe.hcl", changed)
		for _, verb := range []string{"plan", "run"} {
			if code, text := racflow(verb, "pipe.hcl"); code != exitFailed || !strings.Contains(text, "Not a file") {
				t.Errorf("%s, %s: %d, %s", name, verb, code, text)
			}
		}
	}
	fine(t, syscall.Mkfifo(filepath.Join(dir, "fifo.hcl"), 0o600))
	if code, text := racflow("validate"); code == 0 || strings.Contains(text, "fifo.hcl") || !strings.Contains(text, "pipe.hcl") {
		t.Errorf("beside a pipe: %d, %s", code, text)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		_ = os.WriteFile(filepath.Join(dir, "pipe.tsv"), []byte(simpleRows), 0o600) // waits for its reader
		cancel()
	}()
	if code, text := racflow("run", "--input", "pipe.tsv", "p.hcl"); code != 0 || !strings.Contains(text, "4 items") {
		t.Errorf("a pipe that a person names: %d, %s", code, text)
	}
	<-ctx.Done()
}

// fine ends the test at an error.
func fine(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
