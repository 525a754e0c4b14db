package workspace_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/measure/tune"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
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

// picky is a voter that knows the label of fruit and vehicles, if only it is asked to look at
// two words; with three it knows those of most.
func picky() sdk.Stage {
	type config struct {
		Words  int     `config:"words" default:"8" min:"1" doc:"How many words it looks at."`
		Temper float64 `config:"temper" default:"1" min:"0" max:"4" doc:"What it is like."`
		Colour string  `config:"colour" default:"red" one_of:"red,blue" doc:"What it likes."`
	}
	return sdk.SampleStage("picky", "Wants few words.", func(_ context.Context, _ sdk.Setup, c config) (sdk.Sampler, error) {
		return pickyVoter(c.Words), nil
	}, sdk.Reads(sdk.ColumnText))
}

type pickyVoter int

func (v pickyVoter) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	all := make([][]sdk.Sample, len(b.Items))
	for i, item := range b.Items {
		label := "vehicle"
		if strings.HasPrefix(item.Text, "red") && (v == 2 || v == 3 && !strings.HasSuffix(item.Text, "1")) {
			label = "fruit"
		}
		all[i] = []sdk.Sample{{Answers: []sdk.Answer{{Label: label, Weight: 1}}}}
	}
	return all, nil
}

const pickyFile = `
variable "words" { default = 8 }
variable "temper" { default = 1 }
variable "colour" { default = "red" }
variable "found" { default = 60 }
` + knowledgeBlock + `
pipeline "p" {
  retrieve "near" {
    from  = knowledge.k
    top_k = var.found
    keep  = "score > 0"

    num_candidates = 200
  }
  sample "vote" {
    use = "picky"
    config {
      words  = var.words
      temper = var.temper
      colour = var.colour
    }
  }
  elect "e" { use = "soft" }
}
`

// TestTuneValues: values of variables are tried; what is better is written, and what is not
// stays.
func TestTuneValues(t *testing.T) {
	path, o := liarsOf(t, pickyFile)
	var told []string
	o.Events.Measuring = func(value string) { told = append(told, value) }
	found := tuned(t, path, o, tune.Options{Folds: 4, Over: []eval.Target{
		{Name: "var.found", Values: []string{"15", "120"}}, {Name: "var.words", Values: []string{"2", "4"}},
		{Name: "var.temper", Values: []string{"0", "2"}}, {Name: "var.colour", Values: []string{"blue"}},
	}})
	if d := cmp.Diff([]string{
		"as it is", "var.found=15", "var.found=120", "var.words=2", "var.words=4", "var.temper=0", "var.temper=2", "var.colour=blue",
	}, told); d != "" {
		t.Errorf("measured (-want +got):\n%s", d)
	}
	if !found.Subject.Nothing() || len(found.Values) != 4 {
		t.Fatalf("found %+v", found)
	}
	for i, want := range []string{"", "2", "", ""} {
		best, ok := found.Values[i].Best()
		if ok != (want != "") || ok && best != want {
			t.Errorf("%s: best is %q (%v) of %v, want %q", found.Values[i].Name, best, ok, found.Values[i].Choice, want)
		}
	}
	if m := found.Values[2].Choice.Means; m[0] != 1 {
		t.Errorf("accuracy %v with the values that are kept", m[0])
	}
	if _, values, _ := strings.Cut(found.Variables, `"in.tsv"`+"\n"); values != "words = 2\n" {
		t.Errorf("variables are\n%s", found.Variables)
	}
}

// TestTuneOver: values of arguments that are named are tried, one that changes nothing is
// not run again, and what is better is advice: the file would still say otherwise.
func TestTuneOver(t *testing.T) {
	path, o := liarsOf(t, pickyFile)
	var told []string
	o.Events.Measuring = func(value string) { told = append(told, value) }
	found := tuned(t, path, o, tune.Options{Folds: 4, Over: []eval.Target{
		{Name: "vote.words", Values: []string{"8", "3", "2"}}, {Name: "e.use", Values: []string{"majority"}},
	}})
	if d := cmp.Diff([]string{"as it is", "vote.words=3", "vote.words=2", "e.use=majority"}, told); d != "" {
		t.Errorf("measured (-want +got):\n%s", d)
	}
	best, ok := found.Values[0].Best()
	if got := found.Values[0].Setting(best); !ok || got != "set vote.words = 2" {
		t.Errorf("advice %q, %v", got, ok)
	}
	if m := found.Values[1].Choice.Means; m[0] != .5 {
		t.Errorf("accuracy %v with what the file says", m[0])
	}
	if _, values, _ := strings.Cut(found.Variables, `"in.tsv"`+"\n"); values != "" {
		t.Errorf("variables are\n%s", found.Variables)
	}
	if _, err := openAndTune(t, path, o, tune.Options{Folds: 4, Over: []eval.Target{{Name: "near.topk", Values: []string{"5"}}}}); err == nil || !strings.Contains(err.Error(), `Did you mean "near.top_k"?`) {
		t.Errorf("error %v", err)
	}
}

func openAndTune(t *testing.T, path string, o workspace.Options, to tune.Options) (*workspace.Tuned, error) {
	t.Helper()
	p := mustOpen(t, path, o)
	defer p.Close()
	return p.Tune(t.Context(), to)
}

// TestTuneSearch: with gold passages and no labels values of a search are chosen by how
// well they are ranked, and no voter is asked.
func TestTuneSearch(t *testing.T) {
	path, o := liarsOf(t, pickyFile)
	crowd, rows := "id\ttext\tlabel\n", "text\tgold\n"
	for i := range 40 {
		crowd += fmt.Sprintf("%d\tthing n%d of many words here\tfruit\n", i, i)
		rows += fmt.Sprintf("thing n%d\t%d\n", i, (i+1)%40) // the gold passage is never the first
	}
	beside(t, path, "rows.tsv", crowd)
	beside(t, path, "in.tsv", rows)
	o.Vars = map[string]string{"found": "1"}
	recall, err := tune.ReadMetric("recall@40")
	must.Do(t, err)
	for _, metric := range []tune.Metric{{}, recall} {
		found := tuned(t, path, o, tune.Options{Folds: 4, Metric: metric, Over: []eval.Target{{Name: "var.found", Values: []string{"40"}}}})
		best, ok := found.Values[0].Best()
		if !ok || best != "40" || found.Values[0].Choice.Means[0] != 0 || !strings.HasSuffix(found.Variables, "\nfound = 40\n") {
			t.Errorf("%s: best is %q (%v) of %v; variables are\n%s", found.Metric, best, ok, found.Values[0].Choice, found.Variables)
		}
		if metric == recall && found.Values[0].Choice.Means[1] != 1 {
			t.Errorf("%s of the whole knowledge is %v", found.Metric, found.Values[0].Choice.Means[1])
		}
	}
	if _, err := openAndTune(t, path, o, tune.Options{Folds: 4, Metric: tune.Accuracy, Over: []eval.Target{{Name: "var.found", Values: []string{"40"}}}}); err == nil || !strings.Contains(err.Error(), "in.tsv has a label") {
		t.Errorf("error %v", err)
	}
}

// TestTuneHeldOut: without labelled rows the election is fitted on rows of the knowledge,
// each of which is kept out of what is found for it.
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
	// The election gets them as rows that were held out.
	if !strings.Contains(found.Variables, `40 items of "rows.tsv"`) || !strings.Contains(found.Variables, "honest = 2\n") {
		t.Errorf("variables are\n%s", found.Variables)
	}
}
