package workspace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/measure/tune"
	"github.com/racflow/racflow/engine/internal/workspace"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// liars is a pipeline in which two voters swap the labels, and outvote the third.
const liars = `
variable "weights" {
  type    = map(number)
  default = {}
}
knowledge "wrong" {
  source { path = "wrong.tsv" }
  embed { use = "hashing" }
  store { use = "memory" }
}
` + knowledgeBlock + `
pipeline "p" {
  retrieve "false" { from = knowledge.wrong }
  sample "liar" { use = "neighbours" }
  sample "second" { use = "neighbours" }
  retrieve "true" { from = knowledge.k }
  sample "honest" { use = "neighbours" }
  elect "e" {
    use = "witness"
    config { weights = var.weights }
  }
}
`

// liarsOf writes the pipeline beside its knowledge and labelled rows.
func liarsOf(t *testing.T, text string) (path string, o workspace.Options) {
	t.Helper()
	path, o = write(t, text)
	rows := "text\tlabel\n"
	for i := range 40 {
		rows += fmt.Sprintf("red apple a%d\tfruit\nblue car b%d\tvehicle\n", i, i)
	}
	beside(t, path, "wrong.tsv", "text\tlabel\nred apple\tvehicle\ngreen pear\tvehicle\nblue car\tfruit\nfast train\tfruit\n")
	o.Input = beside(t, path, "in.tsv", rows)
	return path, o
}

func tuned(t *testing.T, path string, o workspace.Options, to tune.Options) *workspace.Tuned {
	t.Helper()
	p := mustOpen(t, path, o)
	defer p.Close()
	found, err := p.Tune(t.Context(), to)
	must.Do(t, err)
	return found
}

// TestTuneLearns: an election that learns from votes is fitted on the labelled rows, and its
// resolved values are written.
func TestTuneLearns(t *testing.T) {
	path, o := liarsOf(t, liars)
	found := tuned(t, path, o, tune.Options{Folds: 4})
	if out := found.Outcome; out.Plain != 0 || out.Fitted != 1 || !out.Gain.Better() {
		t.Errorf("accuracy %v with the weights of the file, %v with those that were learnt; %v", out.Plain, out.Fitted, out.Gain)
	}
	if want := "weights = {\n  honest = 1\n  liar   = 0\n  second = 0\n}\n"; !strings.HasSuffix(found.Variables, want) {
		t.Errorf("variables are\n%s, want\n%s", found.Variables, want)
	}
	file := filepath.Join(filepath.Dir(path), "tuned.hclvars")
	must.Do(t, os.WriteFile(file, []byte(found.Variables), 0o600))
	o.VarFiles = []string{file}
	p := mustOpen(t, path, o)
	defer p.Close()
	if r, err := p.Answer(t.Context(), workspace.Item{Text: "red apple"}); err != nil || r.Answer != "fruit" {
		t.Errorf("with them the answer is %q, error %v", r.Answer, err)
	}
	if left, _ := filepath.Glob(filepath.Join(o.State, "tune-*")); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
}

func openAndTune(t *testing.T, path string, o workspace.Options, to tune.Options) (*workspace.Tuned, error) {
	t.Helper()
	p := mustOpen(t, path, o)
	defer p.Close()
	return p.Tune(t.Context(), to)
}

// TestTuneHeldOut: without labelled rows the election is fitted on rows of the knowledge. The
// search for a row excludes the row itself.
func TestTuneHeldOut(t *testing.T) {
	path, o := liarsOf(t, liars)
	rows := "text\tlabel\n"
	for i := range 30 {
		rows += fmt.Sprintf("red apple a%d\tfruit\nblue car b%d\tvehicle\n", i, i)
	}
	beside(t, path, "rows.tsv", rows)
	if _, err := openAndTune(t, path, o, tune.Options{Folds: 4, Rows: 40}); err == nil || !strings.Contains(err.Error(), "Options.Rows tunes on rows of the knowledge") {
		t.Errorf("error %v with an input", err)
	}
	o.Input = ""
	found := tuned(t, path, o, tune.Options{Folds: 4, Rows: 40})
	if out := found.Outcome; out.Items != 40 || out.Plain != 0 || out.Fitted != 1 || found.Incomplete {
		t.Errorf("%d items, accuracy %v with equal weights, %v with those that were found", out.Items, out.Plain, out.Fitted)
	}
	// The election gets them as held-out rows.
	if !strings.Contains(found.Variables, `40 items of "rows.tsv"`) || !strings.Contains(found.Variables, "honest = 2\n") {
		t.Errorf("variables are\n%s", found.Variables)
	}
}
