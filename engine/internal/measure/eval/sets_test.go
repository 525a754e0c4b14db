package eval

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
)

func TestSets(t *testing.T) {
	c := NewCounter("a", "b", "c")
	set := func(expected, answer string) outcome.Result {
		return outcome.Result{Expected: expected, Answer: answer, Form: sdk.LabelForm{Many: true}, Votes: []result.Vote{
			{Voter: "linear", Answer: "a", Weight: .9, Accepted: true}, {Voter: "linear", Answer: "b", Weight: .5, Accepted: true}, {Voter: "linear", Answer: "c", Weight: .1, Accepted: true},
		}}
	}
	failed := set("b; c", "")
	failed.Failure = &outcome.Failure{Err: errors.New("no")}
	for _, r := range []outcome.Result{set("a; b", "a; b"), set("a; b", "a; c"), set("c", "a; c"), set("a", "a"), failed, set("a; x", "a")} {
		c.Add(r)
	}
	r := c.Report(outcome.Totals{})
	if r.Scored != 6 || math.Abs(r.Accuracy-2./6) > 1e-9 {
		t.Errorf("%d scored, accuracy %v", r.Scored, r.Accuracy)
	}
	s := r.Sets // 10 expected, 8 answered, 6 of them right
	for _, f := range []struct {
		name      string
		got, want float64
	}{
		{"micro", s.MicroF1, 12. / 18}, {"precision", s.Precision, .75}, {"recall", s.Recall, .6}, {"example", s.ExampleF1, (1 + .5 + 2./3 + 1 + 0 + 2./3) / 6},
		{"macro", r.MacroF1, (2.*4/9 + 2./4 + 2./4 + 0) / 4}, {"expected", s.ExpectedPerItem, 10. / 6}, {"answered", s.AnsweredPerItem, 8. / 6}, {"outside", float64(s.LabelsOutOfScope), 1},
	} {
		if math.Abs(f.got-f.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", f.name, f.got, f.want)
		}
	}
	if i := s.MicroF1Interval; i.Low >= s.MicroF1 || i.High <= s.MicroF1 || i.Low < .2 {
		t.Errorf("interval %+v of %v", i, s.MicroF1)
	}
	pairs := map[string]int{}
	for _, p := range r.Confused {
		pairs[p.Expected+">"+p.Answered] = p.Items
	}
	if len(pairs) != 3 || pairs["b>c"] != 1 || pairs[">a"] != 1 || pairs["x>"] != 1 {
		t.Errorf("confused: %v", pairs)
	}
	if alone := r.Voters[0].Accuracy; math.Abs(alone-2./6) > 1e-9 { // the answers are a and b, twice
		t.Errorf("alone it is right on %v", alone)
	}
	if r.Scope != nil {
		t.Errorf("a set with a known label is out of scope: %+v", r.Scope)
	}
}

// Items without labels count: an empty set is then right, and no answer is wrong. An item with only unknown labels is
// right without a label.
func TestEmptySets(t *testing.T) {
	c := NewCounter("a", "b")
	set := func(expected, answer string) outcome.Result {
		return outcome.Result{Expected: expected, Answer: answer, Form: sdk.LabelForm{Many: true}, Votes: []result.Vote{{Voter: "llm", Weight: 1, Accepted: true}}}
	}
	for _, r := range []outcome.Result{set("a", "a"), set("[]", "[]"), set("[]", "a; b"), set("[]", ""), set("a; b", "[]"), set("x", "[]"), set("", "a")} {
		c.Add(r)
	}
	r := c.Report(outcome.Totals{})
	if r.Scored != 6 || math.Abs(r.Accuracy-3./6) > 1e-9 || r.Scope == nil || r.Scope.Out != 1 || r.Scope.Recall != 1 {
		t.Errorf("%d scored, accuracy %v, scope %+v", r.Scored, r.Accuracy, r.Scope)
	}
	s := r.Sets
	if s.Empty != 3 || s.EmptyRight != 1 || math.Abs(s.ExampleF1-2./6) > 1e-9 || math.Abs(s.Precision-1./3) > 1e-9 || math.Abs(s.Recall-1./4) > 1e-9 {
		t.Errorf("%+v", s)
	}
	if alone := r.Voters[0].Accuracy; math.Abs(alone-4./6) > 1e-9 { // the items without a label
		t.Errorf("alone it is right on %v", alone)
	}
}

// The interval has its nominal level: for about 95 % of many samples of items, it contains the F1 of
// all items.
func TestSetIntervals(t *testing.T) {
	holds := 0
	const samples, items = 60, 120
	for seed := range samples {
		c := NewCounter("a", "b")
		for i := range items { // right on two of three expected labels, whatever the item
			answer := "a; b"
			if (uint32(i*samples+seed)*2654435761)>>8%3 == 0 {
				answer = "a"
			}
			c.Add(outcome.Result{ID: fmt.Sprint(i), Expected: "a; b", Answer: answer, Form: sdk.LabelForm{Many: true}})
		}
		const truth = 2 * (2 - 1./3) / (4 - 1./3)
		if s := c.Report(outcome.Totals{}).Sets; s.MicroF1Interval.Low <= truth && truth <= s.MicroF1Interval.High {
			holds++
		}
	}
	if holds < samples*85/100 {
		t.Errorf("%d of %d intervals hold the F1", holds, samples)
	}
}

func TestTree(t *testing.T) {
	c := NewCounter("a/b/c", "a/b/d", "e/f/g")
	for _, r := range [][2]string{{"a/b/c", "a/b/c"}, {"a/b/c", "a/b/d"}, {"a/b/c", "a/b"}, {"e/f/g", "a"}, {"e/f/g", ""}} {
		c.Add(outcome.Result{Expected: r[0], Answer: r[1], Form: sdk.LabelForm{Levels: "/"}})
	}
	r := c.Report(outcome.Totals{})
	tree := r.Tree // 15 expected nodes, 3 + 3 + 2 + 1 answered, 3 + 2 + 2 of them right
	for _, f := range []struct {
		name      string
		got, want float64
	}{
		{"accuracy", r.Accuracy, .4}, {"leaves", tree.Leaves, .2}, {"depth", tree.Depth, 9. / 4}, {"expected", tree.ExpectedDepth, 3},
		{"F1", tree.F1, 14. / 24}, {"precision", tree.Precision, 7. / 9}, {"recall", tree.Recall, 7. / 15},
		{"level 1", tree.Levels[0].Accuracy, .6}, {"level 2", tree.Levels[1].Accuracy, .6}, {"level 3", tree.Levels[2].Accuracy, .2}, {"answered", float64(tree.Levels[2].Answered), 2},
	} {
		if math.Abs(f.got-f.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", f.name, f.got, f.want)
		}
	}
}
