package tune

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/runtest"
	"github.com/racflow/racflow/sdk"
)

const file = `
variable "found" { default = 60 }
variable "share" { default = 0.7 }
variable "fusion" { default = "weighted" }
variable "k" { default = 30 }
variable "both" { default = 100 }
variable "shots" { default = 5 }
variable "weights" {
  type    = map(number)
  default = {}
}
variable "off" { default = 3 }
variable "doubled" { default = 2 }
knowledge "k" {
  source { path = "rows.tsv" }
  embed { use = "hashing" }
  store { use = "memory" }
}
pipeline "p" {
  input { path = "rows.tsv" }
  retrieve "near" {
    from           = knowledge.k
    top_k          = var.found
    num_candidates = var.both
    dense_weight   = var.share
    fusion         = var.fusion
    rrf_k          = 2 * var.doubled
    batch          = var.off
  }
  sample "near" {
    use = "plain"
    config "other" { k = var.off }
    config { k = var.k }
  }
  sample "off" {
    use     = "plain"
    enabled = false
    config { k = var.off }
  }
  sample "llm" {
    use = "remote"
    config {
      k = var.shots
      s = var.both
    }
  }
  elect "e" {
    use = "soft"
    config { weights = var.weights }
  }
}
`

type config struct {
	K int     `config:"k" default:"30" min:"1" doc:"Neighbours."`
	S float64 `config:"s" default:"1" min:"0" doc:"Sharpness."`
}

func load(t *testing.T) *pipeline.File {
	open := func(context.Context, sdk.Setup, config) (sdk.Sampler, error) { return nil, nil }
	catalog := append(enginetest.Catalog(enginetest.Stages()), sdk.SampleStage("plain", "Votes.", open),
		sdk.SampleStage("other", "Votes.", open), sdk.SampleStage("remote", "Asks.", open, sdk.Network()))
	return runtest.Load(t, catalog, runtest.Folder(t, map[string]string{runtest.File: file, "rows.tsv": "text\tlabel\na\tb\n"}))
}

// TestFound: what is tried without being named costs nothing, and is what the file takes
// from a variable as it is.
func TestFound(t *testing.T) {
	f := load(t)
	got := map[string]string{}
	for _, target := range FoundTargets(f, f.Pipelines[0], "weights") {
		got[target.Name] = target.Now + ": " + strings.Join(target.Values, " ")
	}
	want := map[string]string{
		"var.found":  "60: 15 30 120 240",
		"var.share":  "0.7: 0 0.2 0.4 0.5 0.6 0.8 0.9 1",
		"var.fusion": "weighted: rrf",
		"var.k":      "30: 7 15 60 120",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestNamed: whether a target costs calls, and what a person is to do.
func TestNamed(t *testing.T) {
	f := load(t)
	tests := []struct {
		target, setting string
		calls           bool
	}{
		{"var.k", "k = 9", false},
		{"var.both", "both = 9", true},
		{"var.doubled", "doubled = 9", true}, // nobody knows what it changes
		{"near.k", "set k = 9 in sample.near", false},
		{"near.top_k", "set top_k = 9 in retrieve.near", false},
		{"retrieve.near.keep", "set keep = 9 in retrieve.near", false},
		{"near.when", "set near.when = 9", false}, // of the search or of the voter
		{"llm.k", "set k = 9 in sample.llm", true},
		{"e.use", "set use = 9 in elect.e", true},
	}
	for _, test := range tests {
		target := NamedTargets(f, f.Pipelines[0], []eval.Target{{Name: test.target}})[0]
		if got := target.Setting("9"); got != test.setting || target.Calls() != test.calls {
			t.Errorf("%s: %q, calls %v; want %q, %v", test.target, got, target.Calls(), test.setting, test.calls)
		}
	}
}

func TestGrid(t *testing.T) {
	number := func(x float64) *float64 { return &x }
	tests := []struct {
		argument  sdk.Argument
		now, want string
	}{
		{sdk.Argument{Type: sdk.TypeInt, Range: sdk.Range{Min: number(1)}}, "1", "2 4"},
		{sdk.Argument{Type: sdk.TypeInt}, "3", "1 6 12"},
		{sdk.Argument{Type: sdk.TypeInt, Range: sdk.Range{Max: number(100)}}, "60", "15 30"},
		{sdk.Argument{Type: sdk.TypeFloat, Range: sdk.Range{Min: number(0), MinExcluded: true}}, "20", "10 14.29 28 40"},
		{sdk.Argument{Type: sdk.TypeFloat}, "0", "0.25 0.5 1 2"},
		{sdk.Argument{Type: sdk.TypeFloat, Range: sdk.Range{Max: number(1)}}, "1", "0 0.5 0.7143"},
		{sdk.Argument{Type: sdk.TypeString, OneOf: []string{"a", "b"}}, "b", "a"},
		{sdk.Argument{Type: sdk.TypeString}, "b", ""},
		{sdk.Argument{Type: sdk.TypeBool}, "true", ""},
	}
	for _, test := range tests {
		if got := strings.Join(grid(test.argument, test.now), " "); got != test.want {
			t.Errorf("%s %s: %s, want %s", test.argument.Type, test.now, got, test.want)
		}
	}
}

func TestMetric(t *testing.T) {
	list := []sdk.Candidate{{ID: "x"}, {ID: "a"}, {ID: "y"}}
	r := outcome.Result{
		Expected: "l", Answer: "l", Gold: []source.Gold{{IDs: []string{"a"}, Grade: 1}, {IDs: []string{"b"}, Grade: 1}},
		Lists: []outcome.List{{Stage: "retrieve.near"}, {Stage: "rerank.best", Candidates: list}},
	}
	labelled, gold := source.Row{Label: "l"}, source.Row{Gold: r.Gold}
	tests := []struct {
		text, name   string
		score        float64
		labels, gold bool
	}{
		{"accuracy", "accuracy", 1, true, false},
		{"ndcg@10", "nDCG@10", 0.38685280723454163, false, true},
		{"recall@1", "recall@1", 0, false, true},
		{"recall@2", "recall@2", .5, false, true},
	}
	for _, test := range tests {
		m, err := ReadMetric(test.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Score(eval.NewCounter("l"), r); got != test.score || m.String() != test.name || m.Row(labelled) != test.labels || m.Row(gold) != test.gold {
			t.Errorf("%s (%s): %v; rows %v, %v", test.text, m, got, m.Row(labelled), m.Row(gold))
		}
		failed := r
		failed.Failure = &outcome.Failure{}
		if got := m.Score(eval.NewCounter("l"), failed); got != 0 {
			t.Errorf("%s of a failed item: %v", m, got)
		}
	}
	if m := (Metric{}); m.For(true) != Accuracy || m.For(false) != NDCG || NDCG.For(true) != NDCG {
		t.Error("the metric does not follow from what the rows have")
	}
	for _, text := range []string{"recall", "recall@0", "recall@x", "f1"} {
		if m, err := ReadMetric(text); err == nil {
			t.Errorf("%s is %s", text, m)
		}
	}
}
