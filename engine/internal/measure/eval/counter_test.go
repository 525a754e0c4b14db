package eval

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
)

// Items that people decided are not scored: figures come from the other items.
func TestDecidedIsNotScored(t *testing.T) {
	items := []outcome.Result{
		{Expected: "a", Answer: "a", Verdict: result.Verdict{Agreement: .5, Confidence: .6}, Votes: []result.Vote{{Voter: "knn", Answer: "a", Weight: 1, Accepted: true}}},
		{Expected: "a", Answer: "b", Verdict: result.Verdict{Agreement: .7, Confidence: .9, Flagged: true}},
	}
	decided := []outcome.Result{
		{Expected: "a", Answer: "c", Verdict: result.Verdict{Agreement: 1, Confidence: 1, Decided: &result.Decision{By: "Ada"}}},
		{Expected: "b", Answer: "b", Verdict: result.Verdict{Agreement: 1, Confidence: 1, Decided: &result.Decision{By: "Ada"}}},
		{Answer: "b", Verdict: result.Verdict{Agreement: 1, Confidence: 1, Decided: &result.Decision{By: "Ada"}}},
	}
	figures := func(all []outcome.Result) Report {
		c, confidences, promised, mistakes := NewCounter("a", "b"), NewConfidences("a", "b"), NewPromised(.9, .9, .9, 0, "a", "b"), NewMistakes(9, "a", "b")
		for _, r := range all {
			c.Add(r)
			confidences.Add(r)
			promised.Add(r)
			mistakes.Add(r)
		}
		r := c.Report(outcome.Totals{})
		r.Calibration, r.Promised, r.Errors = confidences.Report(), promised, mistakes.Report()
		return r
	}
	want, got := figures(items), figures(append(items[:2:2], decided...))
	if got.Decided != 2 || got.Scored != 2 {
		t.Errorf("%d decided, %d scored", got.Decided, got.Scored)
	}
	want.Decided = 2
	if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Promised{}), cmpopts.EquateNaNs()); d != "" {
		t.Errorf("(-without +with):\n%s", d)
	}
}

func TestReport(t *testing.T) {
	vote := func(voter, answer string, weight float64, accepted bool) result.Vote {
		return result.Vote{Voter: voter, Answer: answer, Weight: weight, Accepted: accepted}
	}
	// knn is asked about every item, even if it has no answer; llm is asked about some.
	c := NewCounter().Of(&pipeline.Pipeline{Stages: []*pipeline.Stage{{Block: "sample", Name: "knn"}, {Block: "sample", Name: "llm", Info: sdk.Stage{Network: true}}}})
	for i, r := range []outcome.Result{
		{Expected: "a", Answer: "a", Verdict: result.Verdict{Agreement: 1}, Votes: []result.Vote{
			vote("knn", "a", .4, true), vote("knn", "b", .6, false),
			vote("llm", "b", 1, true), vote("llm", "a", 1, true), vote("llm", "a", 1, true)}},
		{Expected: "a", Answer: "b", Verdict: result.Verdict{Agreement: .5}, Votes: []result.Vote{vote("knn", "b", 1, true)}},
		{Expected: "b", Answer: "b", Verdict: result.Verdict{Agreement: .6}},
		{Expected: "b"}, // undecided
		{Expected: "c", Failure: &outcome.Failure{Stage: "sample.llm", Err: errors.New("down")}},
		{Answer: "z", Verdict: result.Verdict{Agreement: .9}}, // nothing expected
	} {
		r.Latency = time.Duration(i+1) * time.Millisecond
		c.Add(r)
	}
	got := c.Report(outcome.Totals{Items: 6, Failed: 1, Undecided: 1, Elapsed: 2 * time.Second})
	want := Report{
		Items: 6, Scored: 5, Failed: 1, Undecided: 1,
		Accuracy: .4, AccuracyInterval: Wilson(2, 5), Agreement: .75, Flags: Flags{Errors: 3}, ItemsPerSecond: 3, P50: 4, P99: 6,
		// a: 1 of 1 answered, 1 of 2 found; b: 1 of 2, 1 of 2; c: nothing.
		MacroF1: (2.0/3 + .5 + 0) / 3,
		Labels: []Label{
			{Label: "a", Support: 2, Answered: 1, Precision: 1, Recall: .5, F1: 2.0 / 3},
			{Label: "b", Support: 2, Answered: 2, Precision: .5, Recall: .5, F1: .5},
			{Label: "c", Support: 1},
		},
		Confused: []Confused{{"a", "b", 1}, {"b", "", 1}},
		Voters: []Voter{
			{Name: "knn", Asked: 5, Accuracy: .2, AccuracyInterval: Wilson(1, 5), Accepted: .4, Answers: 3, Acceptable: 2. / 3,
				Alone: Paired{Items: 5, Lost: 1}},
			{Name: "llm", Asked: 2, Accuracy: .5, AccuracyInterval: Wilson(1, 2), Accepted: .5, Answers: 3, Acceptable: 1,
				Alone: Paired{Items: 2}},
		},
	}
	if d := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if worst := got.Worst(1); len(worst) != 1 || worst[0].Label != "c" {
		t.Errorf("worst label is %v", worst)
	}
}

func TestNothing(t *testing.T) {
	r := NewCounter().Report(outcome.Totals{})
	if r.Accuracy != 0 || math.IsNaN(r.MacroF1) || math.IsNaN(r.Agreement) || math.IsNaN(r.ItemsPerSecond) {
		t.Errorf("an empty report holds %+v", r)
	}
}

func TestScope(t *testing.T) {
	c := NewCounter("a", "b")
	none := result.Vote{Voter: "llm", Weight: 1, Accepted: true} // no label fits
	for _, r := range []outcome.Result{
		{Expected: "a", Answer: "a"},
		{Expected: "a", Answer: "b"},
		{Expected: "b", Votes: []result.Vote{none}},
		{Expected: "b", Failure: &outcome.Failure{Err: errors.New("down")}},
		{Expected: "oos", Votes: []result.Vote{none}},
		{Expected: "oos", Answer: "a"},
		{Expected: "oos", Answer: "a", Verdict: result.Verdict{Flagged: true}},
		{Expected: "elsewhere", Failure: &outcome.Failure{Err: errors.New("down")}},
		{Answer: "a"},
	} {
		c.Add(r)
	}
	r := c.Report(outcome.Totals{Items: 9})
	want := &Scope{
		In: 4, Out: 4, Accuracy: .25, Interval: Wilson(1, 4), Unanswered: .25,
		Recall: 1. / 4, RecallInterval: Wilson(1, 4), Caught: 2. / 4, Alarms: 1. / 4,
	}
	if d := cmp.Diff(want, r.Scope, cmpopts.EquateApprox(0, 1e-9)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if r.Accuracy != 2./8 || r.Voters[0].Accuracy != 1./2 {
		t.Errorf("accuracy %v, of the voter %v", r.Accuracy, r.Voters[0])
	}
	// An answer to an out-of-scope item is a wrong answer of its label.
	labels := []Label{
		{Label: "a", Support: 2, Answered: 3, Precision: 1. / 3, Recall: .5, F1: 2. / 5},
		{Label: "b", Support: 2, Answered: 1},
	}
	if d := cmp.Diff(labels, r.Labels, cmpopts.EquateApprox(0, 1e-9)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestFlags: flagged scored items with the right answer are false alarms.
func TestFlags(t *testing.T) {
	c := NewCounter("a", "b")
	for _, r := range []outcome.Result{
		{Expected: "a", Answer: "a"},
		{Expected: "a", Answer: "a", Verdict: result.Verdict{Flagged: true}},
		{Expected: "a", Answer: "b", Verdict: result.Verdict{Flagged: true}},
		{Expected: "a", Answer: "b"},
		{Expected: "b", Verdict: result.Verdict{Flagged: true}},   // no answer, although a label is right
		{Expected: "oos", Verdict: result.Verdict{Flagged: true}}, // rightly none
		{Expected: "oos", Answer: "b", Verdict: result.Verdict{Flagged: true}},
		{Expected: "a", Failure: &outcome.Failure{Err: errors.New("down")}},
		{Answer: "a", Verdict: result.Verdict{Flagged: true}}, // nothing expected
	} {
		c.Add(r)
	}
	want := Flags{Errors: 5, Caught: 3, Flagged: 5, Right: 2}
	if got := c.Report(outcome.Totals{}).Flags; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestWorth: gains and losses of a voter alone against the election, and gains of the election by
// the voter, over all items or over the items that the voter is asked about.
func TestWorth(t *testing.T) {
	always := &pipeline.Pipeline{Stages: []*pipeline.Stage{{Block: "sample", Name: "v"}}}
	t.Run("always asked", func(t *testing.T) { worth(t, NewCounter().Of(always), 8, 2) })
	always.Stages[0].When = new(rule.Rule)
	t.Run("asked by a rule", func(t *testing.T) { worth(t, NewCounter().Of(always), 7, 1) })
	t.Run("the file is gone", func(t *testing.T) { worth(t, NewCounter().Of(nil), 7, 1) })
}

func worth(t *testing.T, c *Counter, items, lost int) {
	a := NewAdditions(c)
	for _, test := range []struct{ elected, alone, without string }{
		{"x", "x", "x"}, {"x", "x", ""}, {"x", "y", "y"}, {"x", "", "x"}, {"y", "x", "x"}, {"y", "x", "x"}, {"y", "x", "y"}, {"y", "y", "x"},
	} {
		r := outcome.Result{Expected: "x", Answer: test.elected}
		if test.alone != "" {
			r.Votes = []result.Vote{{Voter: "v", Answer: test.alone, Weight: 1, Accepted: true}}
		}
		c.Add(r)
		a.Add("v", r, outcome.Result{Expected: "x", Answer: test.without})
	}
	r := c.Report(outcome.Totals{})
	a.Report(r.Voters)
	if want := (Paired{Items: items, Lost: lost, Gained: 3}); r.Voters[0].Alone != want {
		t.Errorf("alone %+v, want %+v", r.Voters[0].Alone, want)
	}
	if want := (Paired{Items: items, Lost: 3, Gained: 2}); r.Voters[0].Adds == nil || *r.Voters[0].Adds != want {
		t.Errorf("it adds %+v, want %+v", r.Voters[0].Adds, want)
	}
}

// TestUnusableRows: a row without a text is not scored, but counted.
func TestUnusableRows(t *testing.T) {
	c, totals := NewCounter("a"), outcome.Totals{}
	for _, r := range []outcome.Result{
		{Expected: "a", Answer: "a"},
		{Expected: "a", Failure: &outcome.Failure{Err: &source.RowError{Err: errors.New("it has no text")}}},
	} {
		c.Add(r)
		totals.Add(r)
	}
	if r := c.Report(totals); r.Scored != 1 || r.Accuracy != 1 || r.Failed != 1 || r.Unusable != 1 || r.Decided != 0 || r.Flags.Errors != 0 {
		t.Errorf("%+v", r)
	}
}
