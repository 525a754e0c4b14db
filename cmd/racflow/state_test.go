//go:build unix

package main

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// stateFile uses every folder of the state: knowledge, stages, cache, plugins, runs.
const stateFile = `
variable "base_url" { default = "" }
knowledge "k" {
  source { path = "rows.tsv" }
  chunk { use = "recursive" }
  enrich "words" { use = "path" }
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
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"choices": [{"index": 0, "message": {"role": "assistant", "content": "topic1"}}], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}`)
	}))
	defer server.Close()
	dir := t.TempDir()
	write(t, dir, "p.hcl", stateFile)
	write(t, dir, "rows.tsv", rows(5))
	run := func(state string) {
		t.Helper()
		binary := racflow(t, dir).Path
		_ = os.Symlink("racflow", filepath.Join(dir, "racflow-plugin-leak"))
		c := exec.Command("sh", "-c", `umask 022; exec "$@"`, "sh", binary, "run", "--state", state, "--plugins", ".", "-var", "base_url="+server.URL+"/v1", "p.hcl")
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	folders := []string{"cache", "knowledge", "plugins", "runs", "stages"}

	run("new")
	for _, folder := range folders {
		if entries, err := os.ReadDir(filepath.Join(dir, "new", folder)); err != nil || len(entries) == 0 {
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
