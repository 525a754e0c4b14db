//go:build unix

package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// stateFile uses every folder of the state: what stages learn, say and ask in batches as well.
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

// TestStateIsForItsOwnerAlone runs a pipeline where new files are readable for
// everybody, first into a new folder and then into one from before.
func TestStateIsForItsOwnerAlone(t *testing.T) {
	o := modelserver.Options{}
	o.Batches.Polls = 1
	server := modelserver.Serve(t, o)
	dir := t.TempDir()
	write(t, dir, "p.hcl", stateFile)
	write(t, dir, "rows.tsv", rows(5))
	run := func(state string, verbs ...string) {
		t.Helper()
		binary := racflow(t, dir).Path
		_ = os.Symlink("racflow", filepath.Join(dir, "racflow-plugin-leak"))
		for _, verb := range append(verbs, "run --output "+state+".jsonl p.hcl") {
			args := append([]string{"-c", `umask 0; exec "$@"`, "sh", binary}, strings.Fields(verb)...)
			if !strings.HasPrefix(verb, "cache") {
				args = append(args, "--plugins", ".", "-var", "base_url="+server.URL)
			}
			c := exec.Command("sh", append(args, "--state", state)...)
			c.Dir = dir
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", verb, err, out)
			}
		}
		if info, err := os.Stat(filepath.Join(dir, state+".jsonl")); err != nil || info.Mode().Perm() != 0o666 {
			t.Errorf("results get the rights that the user's umask gives: %v, %v", info, err)
		}
	}
	folders := []string{"cache", "fitted", "knowledge", "pending", "plugins", "profiles", "runs", "stages"}

	run("new", "model probe p.hcl", "ask p.hcl a-question", "eval p.hcl")
	for _, folder := range folders {
		if entries, err := os.ReadDir(filepath.Join(dir, "new", folder)); err != nil || len(entries) == 0 && folder != "pending" { // which is empty by now
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
		if err := os.MkdirAll(old, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(old, 0o755); err != nil {
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
