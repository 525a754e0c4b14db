package eval_test

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/result"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// open stores a run with these results, and opens it.
func open(t *testing.T, state string, m journal.Manifest, results ...outcome.Result) *journal.Journal {
	t.Helper()
	kept := journal.RunsOf(state)
	j, _, err := kept.Begin(m, journal.Options{}, journal.Retention{})
	if err == nil {
		err = errors.Join(j.Keep(results), j.Close(nil))
	}
	if err == nil {
		j, err = kept.Open(j.ID())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close(nil) })
	return j
}

func answer(line int, id, expected, answer string) outcome.Result {
	return outcome.Result{Line: line, ID: id, Expected: expected, Answer: answer, Usage: sdk.Usage{InputTokens: 10, OutputTokens: 1}, Cost: 0.5}
}

func TestCompare(t *testing.T) {
	failed := outcome.Result{Line: 9, ID: "f", Expected: "x", Failure: &outcome.Failure{Err: errors.New("away")}}
	state := t.TempDir()
	a := open(t, state, journal.Manifest{Version: "1", Limit: 3, Variables: []journal.ManifestVariable{{Name: "model", Value: "m"}, {Name: "n", Value: "1"}}},
		answer(1, "a", "x", "x"), answer(2, "b", "x", "y"), answer(3, "c", "y", "y"), answer(4, "c", "y", "x"),
		answer(5, "d", "", "p"), answer(6, "e", "", ""), answer(7, "g", "", "p"), answer(8, "h", "x", "x"), failed, answer(10, "alone", "", "x"))
	b := open(t, state, journal.Manifest{Version: "1", Limit: 4, Variables: []journal.ManifestVariable{{Name: "model", Value: "other"}, {Name: "n", Value: "1"}}},
		answer(11, "d", "", "q"), answer(12, "g", "", "q"), answer(13, "e", "", ""), answer(14, "c", "y", "x"), answer(15, "c", "y", "y"),
		answer(16, "a", "x", "y"), answer(17, "b", "x", "x"), answer(18, "h", "y", "y"), answer(19, "f", "x", "x"))
	got := eval.Compare(a, b)
	accuracyA, accuracyB := 3./5, 4./6
	want := &eval.RunComparison{
		A:    eval.ComparedRun{Run: a.ID(), Answered: 9, Scored: 5, Accuracy: &accuracyA, Interval: eval.Wilson(3, 5), Tokens: 99, Cost: 4.5},
		B:    eval.ComparedRun{Run: b.ID(), Answered: 9, Scored: 6, Accuracy: &accuracyB, Interval: eval.Wilson(4, 6), Tokens: 99, Cost: 4.5},
		Both: 8, OnlyA: 1, OnlyB: 1, Relabelled: 1,
		Right:   &eval.Paired{Items: 4, Lost: 2, Gained: 2},
		Flips:   []eval.LabelFlip{{Label: "x", Lost: 1, Gained: 1}, {Label: "y", Lost: 1, Gained: 1}},
		Changes: []eval.AnswerChange{{A: "p", B: "q", Items: 2}},
		Items: []eval.ChangedItem{
			{Line: 11, ID: "d", A: "p", B: "q"}, {Line: 12, ID: "g", A: "p", B: "q"}, {Line: 14, ID: "c", Expected: "y", A: "y", B: "x", Lost: true},
			{Line: 15, ID: "c", Expected: "y", A: "x", B: "y"}, {Line: 16, ID: "a", Expected: "x", A: "x", B: "y", Lost: true}, {Line: 17, ID: "b", Expected: "x", A: "y", B: "x"},
		},
		Manifest: []string{"Options.Limit, which was 3", "var.model is other, it was m"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestDecided: items that people decided in one of the runs are not compared.
func TestDecided(t *testing.T) {
	decided := func(r outcome.Result) outcome.Result {
		r.Decided = &result.Decision{By: "Ada"}
		return r
	}
	state := t.TempDir()
	a := open(t, state, journal.Manifest{}, answer(1, "a", "x", "x"), answer(2, "b", "x", "y"), answer(3, "c", "", "y"))
	b := open(t, state, journal.Manifest{}, answer(1, "a", "x", "x"), decided(answer(2, "b", "x", "x")), decided(answer(3, "c", "", "x")))
	got := eval.Compare(a, b)
	must.Equal(t, "comparison", []any{3, 2, 1, 1, 2, 0}, []any{got.Both, got.Decided, got.Right.Items, got.B.Scored, got.A.Scored, len(got.Items)})
}

// TestChance: ten flips in one direction are not due to chance, five in each direction are.
func TestChance(t *testing.T) {
	tests := map[string]struct {
		lost, gained int
		chance       float64 // 2 * P(X <= min) for a fair coin
	}{
		"none": {0, 0, 1}, "even": {5, 5, 1}, "ten of ten": {0, 10, 2. / 1024}, "three of four": {1, 3, 2 * 5. / 16},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var before, after []outcome.Result
			for i := range 20 {
				was, is := "x", "x"
				if i < test.lost {
					is = "y"
				} else if i < test.lost+test.gained {
					was = "y"
				}
				before, after = append(before, answer(i, "", "x", was)), append(after, answer(i, "", "x", is))
				before[i].ID, after[i].ID = string(rune('a'+i)), string(rune('a'+i))
			}
			state := t.TempDir()
			r := eval.Compare(open(t, state, journal.Manifest{}, before...), open(t, state, journal.Manifest{}, after...))
			if got := r.Right.Chance(); math.Abs(got-test.chance) > 1e-12 || r.Right.Items != 20 || len(r.Items) != test.lost+test.gained {
				t.Errorf("chance %v of %+v, want %v", got, r.Right, test.chance)
			}
		})
	}
}

// TestCompareTrees: a node above the expected label is right, as in a run.
func TestCompareTrees(t *testing.T) {
	state, m := t.TempDir(), journal.Manifest{Version: "1", Answers: journal.LabelAnswers, LabelForm: sdk.LabelForm{Levels: "/"}}
	a := open(t, state, m, answer(1, "1", "a/b", "a/b"), answer(2, "2", "a/b", "a"), answer(3, "3", "a/b", "a"))
	b := open(t, state, m, answer(1, "1", "a/b", "a"), answer(2, "2", "a/b", "a/c"), answer(3, "3", "a/b", "a/b"))
	got := eval.Compare(a, b)
	if d := cmp.Diff(&eval.Paired{Items: 3, Lost: 1}, got.Right); d != "" || *got.A.Accuracy != 1 || len(got.Items) != 1 || !got.Items[0].Lost {
		t.Errorf("%+v (-want +got):\n%s", got, d)
	}
}
