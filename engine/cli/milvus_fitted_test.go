package cli

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/engine/result"
)

// fittedFile is a pipeline whose stages learn from the knowledge.
const fittedFile = `
variable "store" {}
variable "election" {}

knowledge "utterances" {
  source { path = "rows.tsv" }
  embed {
    use = "hashing"
    config { dimension = 128 }
  }
  store {
    use = var.store
    config "milvus" {
      address = env("MILVUS_ADDRESS", "")
      prefix  = env("MILVUS_PREFIX", "")
      index   = "FLAT"
    }
  }
}
pipeline "p" {
  retrieve "near" { from = knowledge.utterances }
  sample "linear" { use = "linear" }
  sample "neighbours" {
    use     = "neighbours"
    enabled = var.election == "learned"
  }
  elect "e" { use = var.election }
}
`

// TestMilvusFitted learns from the same rows in both stores. What is learnt is the same. The answers
// differ only by the rounding of the neighbours' scores. A later run learns nothing, and a run after
// a change of the rows learns again.
func TestMilvusFitted(t *testing.T) {
	e := startEngine(t)
	examples := [2]string{firstRows(readFile(t, "../../examples/intent", "train.tsv"), 12*14), firstRows(readFile(t, "../../examples/intent", "test.tsv"), 12*7)}
	items := examples[1] + "new\tmoo like a cow, please\t\n"
	for _, election := range []string{"soft", "learned"} {
		t.Run(election, func(t *testing.T) {
			if testing.Short() && election == "soft" {
				t.Skip("a learned election has the stages of the other one, and more")
			}
			dir := folder(t, map[string]string{"p.hcl": fittedFile, "items.tsv": items})
			run := func(store string) (results string, learnt map[string]string) {
				t.Helper()
				c := racflow(t, dir, "run", "--state", store, "-var", "store="+store, "-var", "election="+election, "--input", "items.tsv", "p.hcl")
				c.Env = e.env()
				out, _ := good(t, c)
				return out, fittedFiles(t, filepath.Join(dir, store))
			}
			both := func() (results string, learnt map[string]string) {
				t.Helper()
				results, learnt = run("milvus")
				other, otherLearnt := run("local")
				if d := cmp.Diff(jsonLines[result.Result](t, results), jsonLines[result.Result](t, other), cmpopts.EquateApprox(0, 1e-5)); d != "" {
					t.Errorf("results (-milvus +local):\n%s", d)
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
			if len(learnt) == 0 || strings.Count(results, "\n") != strings.Count(items, "\n")-1 || strings.Contains(results, `"answer":"moo"`) {
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

// fittedFiles returns the files with what stages have learnt in a state folder, by path.
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
