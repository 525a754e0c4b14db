package reelect_test

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/eval"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/reelect"
	"github.com/racflow/racflow/engine/run/runtest"
)

func wanted(r outcome.Result) bool { return r.Line != known+8 }

// TestWithout: an election held again without a voter decides what a run decides that has
// no such voter, and the run forgets its items. Rows that cannot be used stay as they are,
// and so does what the election has learned.
func TestWithout(t *testing.T) {
	for _, use := range []string{"soft", "majority", "leader"} {
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

var builtin = engine.Serve(stages())

// TestEvaluate: what an evaluation says that each voter adds is the difference to the
// evaluation of a pipeline without it, where the election learns from votes, too.
func TestEvaluate(t *testing.T) {
	for _, use := range []string{"soft", "leader"} {
		path := filepath.Join(runtest.Folder(t, files()), runtest.File)
		evaluate := func(set ...pipeline.Override) eval.Report {
			p, err := engine.Open(t.Context(), path, engine.Options{
				Builtin: builtin, State: t.TempDir(), Input: filepath.Join(filepath.Dir(path), "input.tsv"),
				Set: append(set, pipeline.Override{Target: "var.election", Value: use}),
			})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			found, err := p.Evaluate(t.Context(), eval.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return found.Rows[0].Report
		}
		whole := evaluate()
		if whole.Failed > 0 || len(whole.Voters) != 3 {
			t.Fatalf("%s: %+v", use, whole)
		}
		for _, v := range whole.Voters {
			less := evaluate(pipeline.Override{Target: "sample." + v.Name + ".enabled", Value: "false"})
			if v.Adds == nil || math.Abs(v.Adds.Difference()-(whole.Accuracy-less.Accuracy)) > 1e-9 {
				t.Errorf("%s: %s adds %+v to %v, and without it there are %v", use, v.Name, v.Adds, whole.Accuracy, less.Accuracy)
			}
		}
	}
}
