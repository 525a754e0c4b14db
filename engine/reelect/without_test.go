package reelect_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/enginetest"
	"github.com/racflow/racflow/engine/launch"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/reelect"
	"github.com/racflow/racflow/engine/run"
	"github.com/racflow/racflow/engine/run/runtest"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/engine/stage"
	"github.com/racflow/racflow/sdk"
)

const file = `
variable "election" { default = "soft" }
knowledge "k" {
  source { path = "train.tsv" }
  embed { use = "hashing" }
  store { use = "memory" }
}
pipeline "p" {
  retrieve "near" { from = knowledge.k }
  sample "near" { use = "neighbours" }
  sample "centroid" { use = "prototype" }
  sample "word" { use = "first_word" }
  elect "e" {
    use    = var.election
    accept = "answer in labels"
    flag   = "agreement < 0.8"
  }
}
`

// firstWord votes by the first word alone.
type firstWord struct{}

func (firstWord) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	all := make([][]sdk.Sample, len(b.Items))
	for i, item := range b.Items {
		var n int
		_, err := fmt.Sscanf(item.Text, "w%d", &n)
		if err != nil {
			return nil, err
		}
		all[i] = []sdk.Sample{{Answers: []sdk.Answer{{Label: fmt.Sprintf("label%d", n%4), Weight: 1}}}}
	}
	return all, nil
}

func stages() enginetest.Catalog {
	open := func(context.Context, sdk.Setup, struct{}) (sdk.Sampler, error) { return firstWord{}, nil }
	return append(enginetest.Stages(), sdk.SampleStage("first_word", "Votes by the first word.", open, sdk.Reads(sdk.ColumnText)))
}

// texts are of words of which some hint at a label, and no two are alike: nothing is a
// tie. The first are known.
func texts() (labels, texts []string) {
	random := rand.New(rand.NewPCG(5, 6)) //nolint:gosec // for a test
	for i := range 120 {
		var words []string
		for range 7 {
			words = append(words, fmt.Sprintf("w%d", (i%4)*10+random.IntN(25)))
		}
		labels, texts = append(labels, fmt.Sprintf("label%d", i%4)), append(texts, strings.Join(words, " "))
	}
	return labels, texts
}

const known = 40

// open starts the pipeline with some of its arguments set.
func open(t *testing.T, set ...pipeline.Override) (*run.Run, *pipeline.Pipeline, launch.Func) {
	t.Helper()
	train := "text\tlabel\n"
	labels, texts := texts()
	for i := range known {
		train += texts[i] + "\t" + labels[i] + "\n"
	}
	dir := runtest.Folder(t, map[string]string{"train.tsv": train, runtest.File: file})
	p, start := runtest.Load(t, stages(), dir, set...).Pipelines[0], runtest.Launch(t, dir)
	r, err := run.Open(t.Context(), p, run.Options{Options: stage.Options{Ballots: true, Fitted: filepath.Join(dir, "fitted")}, Launch: start})
	if err != nil {
		t.Fatal(err)
	}
	return r, p, start
}

// answer answers the other texts, of which one is a row that cannot be used, and returns
// how many they are.
func answer(t *testing.T, r *run.Run, write func([]outcome.Result) error) int {
	t.Helper()
	labels, texts := texts()
	var rows []source.Row
	for i := known; i < len(texts); i++ {
		rows = append(rows, source.Row{Line: i + 1, Text: texts[i], Label: labels[i]})
	}
	rows[3].Err = errors.New("it cannot be read")
	if _, err := r.Items(t.Context(), runtest.Rows(rows...), nil, write); err != nil {
		t.Fatal(err)
	}
	return len(rows)
}

func wanted(r outcome.Result) bool { return r.Line != known+8 }

// TestWithout: an election held again without a voter decides what a run decides that has
// no such voter, and the run forgets its items. Rows that cannot be used stay as they are.
func TestWithout(t *testing.T) {
	for _, use := range []string{"soft", "majority", "witness"} {
		election := pipeline.Override{Target: "var.election", Value: use}
		r, p, start := open(t, election)
		w, err := reelect.NewWithout(t.Context(), r, p, start)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]map[int]outcome.Result{"near": {}, "centroid": {}, "word": {}}
		rows := answer(t, r, func(batch []outcome.Result) error {
			err := w.Elect(t.Context(), batch, wanted, func(voter string, answered, without outcome.Result) {
				if got[voter][answered.Line] = without; answered.Line != without.Line {
					t.Errorf("line %d was compared with %d", answered.Line, without.Line)
				}
			})
			for _, one := range batch {
				if r.Record(one.Line) != nil {
					t.Errorf("the run still holds line %d", one.Line)
				}
			}
			return err
		})
		for voter, results := range got {
			if len(results) != rows-1 {
				t.Errorf("%s without %s: %d items, want %d", use, voter, len(results), rows-1)
			}
			less, _, _ := open(t, election, pipeline.Override{Target: "sample." + voter + ".enabled", Value: "false"})
			answer(t, less, func(batch []outcome.Result) error {
				for _, want := range batch {
					got := results[want.Line]
					if wanted(want) && (got.Answer != want.Answer || got.Agreement != want.Agreement || got.Flagged != want.Flagged || (got.Failure == nil) != (want.Failure == nil)) {
						t.Errorf("%s without %s, line %d: %q, %v, %v; want %q, %v, %v", use, voter, want.Line,
							got.Answer, got.Agreement, got.Flagged, want.Answer, want.Agreement, want.Flagged)
					}
				}
				return nil
			})
		}
	}
}

// TestOneVoter: a pipeline with one voter has none to leave out. What the run keeps is
// forgotten all the same.
func TestOneVoter(t *testing.T) {
	off := func(voter string) pipeline.Override {
		return pipeline.Override{Target: "sample." + voter + ".enabled", Value: "false"}
	}
	r, p, start := open(t, off("near"), off("word"))
	w, err := reelect.NewWithout(t.Context(), r, p, start)
	if err != nil {
		t.Fatal(err)
	}
	answer(t, r, func(batch []outcome.Result) error {
		err := w.Elect(t.Context(), batch, wanted, func(voter string, _, _ outcome.Result) { t.Errorf("%s was left out", voter) })
		for _, one := range batch {
			if r.Record(one.Line) != nil {
				t.Errorf("the run still holds line %d", one.Line)
			}
		}
		return err
	})
}
