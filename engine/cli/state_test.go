//go:build unix

package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// stateFile uses every folder of the state, for what stages learn, answer and ask in batches.
const stateFile = `
variable "base_url" { default = "" }
knowledge "k" {
  source { path = "rows.tsv" }
  chunk { use = "recursive" }
  enrich "words" { use = "path" }
  enrich "context" {
    use = "context"
    config {
      base_url = var.base_url
      model    = "m"
      api_key  = "sk-test-0123"
    }
  }
  embed { use = "hashing" }
  store { use = "local" }
}
pipeline "p" {
  input { path = "rows.tsv" }
  retrieve "near" { from = knowledge.k }
  prompt "shots" { use = "completion" }
  sample "llm" {
    use = "openai"
    config {
      base_url = var.base_url
      model    = "m"
      api_key  = "sk-test-0123"
    }
  }
  sample "batched" {
    use = "openai"
    config {
      base_url = var.base_url
      model    = "batched"
      api_key  = "sk-test-0123"
      batch    = true
    }
  }
  sample "linear" { use = "linear" }
  sample "quiet" {
    use = "leak/voter"
    config {
      key   = "none to see"
      token = "none"
      how   = "quiet"
    }
  }
  elect "e" { use = "soft" }
}
`

// TestStateIsForItsOwnerAlone runs a pipeline in an environment where new files are readable for
// everybody, first with a new folder and then with an old one.
func TestStateIsForItsOwnerAlone(t *testing.T) {
	o := modelserver.Options{}
	o.Batches.Polls = 1
	server := modelserver.Serve(t, o)
	dir := folder(t, map[string]string{"p.hcl": stateFile, "rows.tsv": rows(5)})
	linkPlugin(t, dir, "leak")
	run := func(state string, verbs ...string) {
		t.Helper()
		binary := racflow(t, dir).Path
		for _, verb := range append(verbs, "run --output "+state+".jsonl p.hcl") {
			args := append([]string{"-c", `umask 0; exec "$@"`, "sh", binary}, strings.Fields(verb)...)
			if !strings.HasPrefix(verb, "cache") {
				args = append(args, "--plugins", ".", "-var", "base_url="+server.URL)
			}
			c := exec.Command("sh", append(args, "--state", state)...)
			c.Dir = dir
			must(t, c)
		}
		if info, err := os.Stat(filepath.Join(dir, state+".jsonl")); err != nil || info.Mode().Perm() != 0o666 {
			t.Errorf("results get the rights that the user's umask gives: %v, %v", info, err)
		}
	}
	folders := []string{"cache", "fitted", "knowledge", "pending", "plugins", "profiles", "runs", "stages"}

	run("new", "model probe p.hcl", "ask p.hcl a-question", "eval p.hcl")
	for _, folder := range folders {
		if entries, err := os.ReadDir(filepath.Join(dir, "new", folder)); err != nil || len(entries) == 0 && folder != "pending" { // pending is empty by now
			t.Errorf("the run kept nothing in %s: %v", folder, err)
		}
	}
	wide := func(root string) (found []string) {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err == nil && info.Mode()&0o077 != 0 {
				found = append(found, fmt.Sprintf("%v %s", info.Mode(), path))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if found := wide(filepath.Join(dir, "new")); found != nil {
		t.Errorf("others may look into\n%s", strings.Join(found, "\n"))
	}

	for _, folder := range folders {
		old := filepath.Join(dir, "old", folder)
		if err := errors.Join(os.MkdirAll(old, 0o700), os.Chmod(old, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	run("old")
	for _, folder := range folders {
		if found := wide(filepath.Join(dir, "old", folder)); found != nil {
			t.Errorf("others may still look into\n%s", strings.Join(found, "\n"))
		}
	}
}

// readOnlyFile needs only state that the earlier run has made, except what an election learns.
const readOnlyFile = `
variable "election" { default = "soft" }
knowledge "k" {
  source { path = "rows.tsv" }
  embed { use = "hashing" }
  store { use = "local" }
}
pipeline "p" {
  input { path = "rows.tsv" }
  retrieve "near" { from = knowledge.k }
  sample "knn" { use = "neighbours" }
  sample "linear" { use = "linear" }
  elect "e" { use = var.election }
}
`

// TestReadOnlyState answers from the knowledge of a state folder that the process may only read. If
// the tests run as root, it uses another user, since no mode restricts root.
func TestReadOnlyState(t *testing.T) {
	dir := folder(t, map[string]string{"p.hcl": readOnlyFile, "rows.tsv": rows(40)})
	run := func(c *exec.Cmd) (stdout, stderr string, code int) {
		t.Helper()
		var out, errs strings.Builder
		c.Stdout, c.Stderr = &out, &errs
		switch err := c.Run(); {
		case errors.Is(err, fs.ErrPermission): // of a container, or of a folder above
			t.Skip(err)
		case c.ProcessState == nil:
			t.Fatal(err)
		}
		return out.String(), errs.String(), c.ProcessState.ExitCode()
	}
	warm, stderr, code := run(racflow(t, dir, "run", "--state", "state", "p.hcl"))
	if code != exitOK {
		t.Fatal(stderr)
	}
	root := os.Geteuid() == 0
	set := func(mode fs.FileMode) {
		err := filepath.WalkDir(filepath.Join(dir, "state"), func(path string, _ fs.DirEntry, err error) error {
			if err == nil {
				err = os.Chmod(path, mode)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	set(0o555)
	defer set(0o755)
	for _, path := range []string{filepath.Dir(dir), dir, filepath.Join(dir, "p.hcl"), filepath.Join(dir, "rows.tsv")} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	reading := func(args ...string) (stdout, stderr string, code int) {
		t.Helper()
		c := racflow(t, dir, append(args, "--state", "state")...)
		if root {
			c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			c.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=")
		}
		return run(c)
	}
	if out, stderr, code := reading("run", "--no-journal", "p.hcl"); code != exitOK || out != warm || !strings.Contains(stderr, "up to date") {
		t.Errorf("run: %d\n%s\n%.1000s\nwant what the folder's owner got: %.1000s", code, stderr, out, warm)
	}
	for _, args := range [][]string{{"ask", "p.hcl", "order number 3"}, {"eval", "p.hcl"}, {"run", "--no-journal", "--var", "election=learned", "p.hcl"}} {
		if out, stderr, code := reading(args...); code != exitOK || out == "" {
			t.Errorf("%s: %d\n%s", args, code, stderr)
		}
	}
	if _, stderr, code := reading("run", "p.hcl"); code != exitFailed || !strings.Contains(stderr, "name another state folder with --state, or run with --no-journal") {
		t.Errorf("with a journal: %d\n%s", code, stderr)
	}
	write(t, dir, "rows.tsv", rows(41))
	if _, stderr, code := reading("run", "--no-journal", "p.hcl"); code != exitFailed || !strings.Contains(stderr, "cannot be written: name another with --state") {
		t.Errorf("with other rows: %d\n%s", code, stderr)
	}
}
