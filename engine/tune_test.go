package engine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/tune"
)

// liars is a pipeline in which two voters know the labels the wrong way round, and outvote
// the third.
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
` + knowledge + `
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
func liarsOf(t *testing.T, text string) (path string, o engine.Options) {
	t.Helper()
	path, o = write(t, text)
	rows := "text\tlabel\n"
	for i := range 40 {
		rows += fmt.Sprintf("red apple %d\tfruit\nblue car %d\tvehicle\n", i, i)
	}
	for name, content := range map[string]string{
		"wrong.tsv": "text\tlabel\nred apple\tvehicle\ngreen pear\tvehicle\nblue car\tfruit\nfast train\tfruit\n",
		"in.tsv":    rows,
	} {
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o.Input = filepath.Join(filepath.Dir(path), "in.tsv")
	return path, o
}

func tuned(t *testing.T, path string, o engine.Options, to tune.Options) *engine.Tuned {
	t.Helper()
	p, err := engine.Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	found, err := p.Tune(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestTuneLearns: an election that learns from votes is fitted by itself, on the rows with
// labels, and what it has resolved is written.
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
	if err := os.WriteFile(file, []byte(found.Variables), 0o600); err != nil {
		t.Fatal(err)
	}
	o.VarFiles = []string{file}
	p, err := engine.Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if r, err := p.Answer(t.Context(), engine.Item{Text: "red apple"}); err != nil || r.Answer != "fruit" {
		t.Errorf("with them the answer is %q, error %v", r.Answer, err)
	}
	if left, _ := filepath.Glob(filepath.Join(o.State, "tune-*")); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
}
