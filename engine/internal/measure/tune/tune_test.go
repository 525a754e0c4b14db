package tune_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/measure/tune"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/runtest"
	"github.com/racflow/racflow/engine/internal/run/stage"
	"github.com/racflow/racflow/engine/internal/source"

	"github.com/racflow/racflow/sdk"
)

const tuneFile = `
variable "margin_below" { default = 0.3 }
variable "other" { default = 2 }
variable "weights" {
  type    = map(number)
  default = {}
}
variable "accuracy" {
  type    = map(number)
  default = {}
}
variable "election" { default = "soft" }
knowledge "k" {
  source { path = "train.tsv" }
  embed { use = "hashing" }
  store { use = "memory" }
}
pipeline "p" {
  input { path = "rows.tsv" }
  retrieve "near" { from = knowledge.k }
  sample "knn" { use = "neighbours" }
  sample "prototype" { use = "prototype" }
  sample "llm" {
    use  = "model"
    when = "margin < var.margin_below"
    n    = 2
  }
  sample "second" {
    use  = "model"
    when = "agreement <= var.other"
  }
  elect "e" {
    use    = var.election
    accept = "answer in labels && margin > 0.03"
    config "soft" { weights = var.weights }
    config "majority" { weights = var.weights }
    config "weighted" { accuracy = var.accuracy }
  }
}
`

// model is a voter that is right on most items.
type model struct {
	labels map[string]string
	n      int
}

func (m model) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	all := make([][]sdk.Sample, len(b.Items))
	for i, item := range b.Items {
		h := fnv.New64a()
		h.Write([]byte(item.Text))
		label := m.labels[item.Text]
		switch h.Sum64() % 20 {
		case 0:
			label = "elsewhere"
		case 1, 2:
			label = fmt.Sprintf("label%d", h.Sum64()/20%6)
		}
		for range m.n {
			all[i] = append(all[i], sdk.Sample{Answers: []sdk.Answer{{Label: label, Weight: 1}}, Usage: sdk.Usage{InputTokens: 100}})
		}
	}
	return all, nil
}

// bench is a folder with the file and its rows.
type bench struct {
	t       *testing.T
	dir     string
	catalog enginetest.Catalog
}

// newBench writes texts of words, most of which hint at a label.
func newBench(t *testing.T) bench {
	rng := rand.New(rand.NewPCG(1, 2))
	labels := map[string]string{}
	rows := func(n int) string {
		text := "text\tlabel\n"
		for range n {
			label := rng.IntN(6)
			var words []string
			for range 6 {
				of := label
				if rng.IntN(3) > 0 {
					of = rng.IntN(6)
				}
				words = append(words, fmt.Sprintf("w%dx%d", of, rng.IntN(6)))
			}
			row := strings.Join(words, " ")
			labels[row] = fmt.Sprintf("label%d", label)
			text += row + "\t" + labels[row] + "\n"
		}
		return text
	}
	b := bench{t: t, dir: runtest.Folder(t, map[string]string{"train.tsv": rows(120), "rows.tsv": rows(200), runtest.File: tuneFile})}
	open := func(_ context.Context, s sdk.Setup, _ struct{}) (sdk.Sampler, error) {
		return model{labels, s.Samples}, nil
	}
	b.catalog = append(enginetest.Stages(), sdk.SampleStage("model", "Stands for a language model.", open, sdk.Reads(sdk.ColumnText)))
	return b
}

// load loads the file with replaced arguments, each as target=value.
func (b bench) load(set ...string) *pipeline.File {
	b.t.Helper()
	var all []pipeline.Override
	for _, s := range set {
		target, value, _ := strings.Cut(s, "=")
		all = append(all, pipeline.Override{Target: target, Value: value})
	}
	return runtest.Load(b.t, b.catalog, b.dir, all...)
}

// run answers all rows.
func (b bench) run(p *pipeline.Pipeline) (*run.Run, []outcome.Result) {
	b.t.Helper()
	r, err := run.Open(b.t.Context(), p, run.Options{Options: stage.Options{Ballots: true}, Launch: runtest.Launch(b.t, b.dir)})
	if err != nil {
		b.t.Fatal(err)
	}
	rows, err := p.Input.Open(nil)
	if err != nil {
		b.t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // it was only read
	var all []outcome.Result
	_, err = r.Items(b.t.Context(), func() (source.Row, error) { return rows.Next() }, nil, func(batch []outcome.Result) error {
		all = append(all, batch...)
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return r, all
}

// TestReelect: an election held again decides as a run in which the voters were really not asked.
func TestReelect(t *testing.T) {
	b := newBench(t)
	for _, election := range []string{"soft", "weighted"} {
		everything := b.load("var.election="+election, "var.margin_below=2", "var.other=2").Pipelines[0]
		r, results := b.run(everything)
		again, err := tune.NewElection(t.Context(), r, everything, runtest.Launch(t, b.dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []float64{0, .2, 2} {
			_, want := b.run(b.load("var.election="+election, fmt.Sprintf("var.margin_below=%g", at), "var.other=0.6").Pipelines[0])
			asked := func(a tune.AskRule) bool {
				switch a.Stage.Name {
				case "llm":
					return a.Margin < at
				case "second":
					return a.Agreement <= .6
				}
				return true
			}
			got, err := again.Elect(t.Context(), results, asked)
			if err != nil {
				t.Fatal(err)
			}
			for i := range want {
				if got[i].Answer != want[i].Answer || got[i].Agreement != want[i].Agreement || got[i].Usage != want[i].Usage || got[i].Reason != want[i].Reason {
					t.Fatalf("%s, %g, row %d: %q (%v, %+v, %q), want %q (%v, %+v, %q)", election, at, i,
						got[i].Answer, got[i].Agreement, got[i].Usage, got[i].Reason, want[i].Answer, want[i].Agreement, want[i].Usage, want[i].Reason)
				}
			}
		}
	}
}

// TestRun tunes on some rows and compares the figures with a run.
func TestRun(t *testing.T) {
	b := newBench(t)
	for _, election := range []string{"soft", "majority", "weighted"} {
		t.Run(election, func(t *testing.T) {
			f := b.load("var.election="+election, "second.enabled=false")
			s, diags := tune.Find(f, f.Pipelines[0], "margin_below")
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			load := func(set []pipeline.Override) *pipeline.Pipeline {
				set = append(slices.Clone(set), pipeline.Override{Target: "var.election", Value: election}, pipeline.Override{Target: "second.enabled", Value: "false"})
				return runtest.Load(b.t, b.catalog, b.dir, set...).Pipelines[0]
			}
			r, results := b.run(load(s.Everything()))
			task := tune.Task{Subject: s, Results: results, Labels: r.Labels(), Options: tune.Options{Folds: 4}, Cost: func(_ string, u sdk.Usage) float64 { return float64(u.InputTokens) }}
			task.Election = func(ctx context.Context, found tune.Found) (*tune.Election, error) {
				var err error
				p := load(s.Everything())
				if last := len(p.Stages) - 1; found != nil {
					if p.Stages[last], err = s.Weighed(p.Stages[last], found); err != nil {
						return nil, err
					}
				}
				return tune.NewElection(ctx, r, p, func(ctx context.Context, l stage.LaunchRequest) (any, error) {
					return l.Stage.Info.Open(ctx, sdk.Setup{}, l.Stage.Config.Open)
				})
			}
			o, err := task.Run(t.Context())
			t.Logf("gain %v", o.Gain)
			if err != nil {
				t.Fatal(err)
			}
			first, last, chosen := o.Curve[0], o.Curve[len(o.Curve)-1], o.Curve[o.Chosen]
			if first.Sent != 0 || last.Sent != 1 || !(first.Cost < chosen.Cost || o.Chosen == 0) || chosen.Cost > last.Cost {
				t.Errorf("the curve runs from %+v over %+v to %+v", first, chosen, last)
			}
			if last.Accuracy < first.Accuracy+.05 || chosen.Accuracy < last.Accuracy-.005 {
				t.Errorf("accuracy is %v with nothing sent, %v with everything, %v as chosen", first.Accuracy, last.Accuracy, chosen.Accuracy)
			}
			for _, file := range []struct {
				threshold string
				stays     bool
			}{{"2", true}, {"-1", false}} { // everything is sent, or nothing
				f := b.load("var.election="+election, "second.enabled=false", "var.margin_below="+file.threshold)
				task := task
				task.Subject, _ = tune.Find(f, f.Pipelines[0], "margin_below")
				again, err := task.Run(t.Context())
				if err != nil || again.Stays != file.stays || again.Stays && again.Threshold != task.Now() {
					t.Errorf("the file's threshold is %s; it stays: %v; found is %v, better by %v (error %v)", file.threshold, again.Stays, again.Threshold, again.Better, err)
				}
				share := .5
				task.Goal.Share = &share
				if again, err = task.Run(t.Context()); err != nil || again.Stays || again.Choice.Sent > .7 {
					t.Errorf("for half of the items, %v are sent, and the file's threshold stays: %v (error %v)", again.Choice.Sent, again.Stays, err)
				}
			}
			weights, _ := o.Found[s.Argument].(map[string]float64)
			if len(weights) != 3 && (weights != nil || o.Fitted > o.Plain+.02) {
				t.Errorf("weights %v, worth %v against %v: three voters are to have one", weights, o.Fitted, o.Plain)
			}
			if p := weights["llm"]; election == "weighted" && (p < .8 || p > .95) {
				t.Errorf("the model's accuracy is %v; it is right on 17 of 20 items", p)
			}
			// The pipeline accepts the file of variables with the found values.
			name := filepath.Join(b.dir, election+".hclvars")
			if err := os.WriteFile(name, []byte(s.Variables(o, o.Items, "rows.tsv", "00")), 0o600); err != nil {
				t.Fatal(err)
			}
			_, faults := pipeline.Load(context.Background(), runtest.File, pipeline.Options{Getenv: os.LookupEnv, Dir: b.dir, Catalog: b.catalog, VarFiles: []string{name}})
			if faults.HasErrors() {
				t.Error(faults)
			}
		})
	}
}

// TestFind: a diagnostic says at its place what cannot be tuned.
func TestFind(t *testing.T) {
	b := newBench(t)
	tests := []struct {
		name, variable string
		set            []string
		want           string
	}{
		{"several thresholds", "", nil, "One threshold is found at a time: choose one of margin_below, other."},
		{"one that is not there", "margin_blow", nil, `compares margin or agreement with var.margin_blow. Did you mean "margin_below"?`},
		{"nothing at all", "", []string{"llm.enabled=false", "second.enabled=false", "var.election=first"}, "This pipeline has neither."},
	}
	b.catalog = append(b.catalog, sdk.ElectStage("first", "", func(context.Context, sdk.Setup, struct{}) (sdk.Elector, error) { return nil, io.EOF }))
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := b.load(test.set...)
			_, diags := tune.Find(f, f.Pipelines[0], test.variable)
			if !diags.HasErrors() || !strings.Contains(diags.Error(), test.want) {
				t.Errorf("%v, want %s", diags, test.want)
			}
		})
	}
	f := b.load("second.enabled=false", "var.election=weighted")
	s, diags := tune.Find(f, f.Pipelines[0], "")
	if diags.HasErrors() || s.Variable != "margin_below" || s.Weights != "accuracy" || s.Argument != "accuracy" {
		t.Errorf("found %+v, %v", s, diags)
	}
}
