package main

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fittedFile is a pipeline whose stages learn from the knowledge.
const fittedFile = `
variable "store" {}
variable "election" {}

knowledge "utterances" {
  source { path = "rows.tsv" }
  embed { use = "hashing" }
  store {
    use = var.store
    config "milvus" {
      address = env("MILVUS_ADDRESS", "")
      index   = "FLAT"
    }
  }
}
pipeline "p" {
  retrieve "near" { from = knowledge.utterances }
  sample "linear" { use = "linear" }
  elect "e" { use = var.election }
}
`

// TestMilvusFitted learns from the same rows in both stores: what is learnt and every
// answer are the same, a later run learns nothing, and one after a change of the rows
// learns again.
func TestMilvusFitted(t *testing.T) {
	e := startEngine(t)
	var examples [2]string
	for i, name := range []string{"train.tsv", "test.tsv"} {
		text, err := os.ReadFile(filepath.Join("../../examples/intent", name))
		if err != nil {
			t.Fatal(err)
		}
		examples[i] = string(text)
	}
	for _, election := range []string{"soft"} {
		t.Run(election, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "p.hcl", fittedFile)
			write(t, dir, "items.tsv", examples[1]+"new\tmoo like a cow, please\t\n")
			run := func(store string) (results string, learnt map[string]string) {
				t.Helper()
				c := racflow(t, dir, "run", "--state", store, "-var", "store="+store, "-var", "election="+election, "--input", "items.tsv", "p.hcl")
				c.Env = append(os.Environ(), "MILVUS_ADDRESS="+e.address())
				var stderr bytes.Buffer
				c.Stderr = &stderr
				out, err := c.Output()
				if err != nil {
					t.Fatalf("%s: %v\n%s", store, err, &stderr)
				}
				return string(out), fittedFiles(t, filepath.Join(dir, store))
			}
			both := func() (results string, learnt map[string]string) {
				t.Helper()
				results, learnt = run("milvus")
				other, otherLearnt := run("local")
				if results != other {
					t.Error("the results differ between the stores")
				}
				if !slices.Equal(slices.Sorted(maps.Values(learnt)), slices.Sorted(maps.Values(otherLearnt))) {
					t.Error("what was learnt differs between the stores")
				}
				if again, kept := run("milvus"); again != results || !maps.Equal(kept, learnt) {
					t.Error("a second run has other results, or has learnt again")
				}
				return results, learnt
			}
			write(t, dir, "rows.tsv", examples[0])
			results, learnt := both()
			if len(learnt) == 0 || strings.Count(results, "\n") != 281 || strings.Contains(results, `"answer":"moo"`) {
				t.Errorf("%d files are learnt, results:\n%s", len(learnt), results)
			}
			write(t, dir, "rows.tsv", examples[0]+"m1\tmoo like a cow\tmoo\nm2\tplease moo\tmoo\n")
			results, again := both()
			if len(again) != 2*len(learnt) || !strings.Contains(results, `"id":"new","text":"moo like a cow, please","answer":"moo"`) {
				t.Errorf("%d files are learnt, then %d, results:\n%s", len(learnt), len(again), results)
			}
		})
	}
}

// fittedFiles are the files that stages have learnt into a state folder, by their paths.
func fittedFiles(t *testing.T, state string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(filepath.Join(state, "fitted"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		files[path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
