package eval

import (
	"errors"
	"testing"

	"github.com/racflow/racflow/engine/outcome"
)

// Answers without a flag are counted, and rows out of scope that are caught.
func TestPromised(t *testing.T) {
	p := NewPromised(.9, .95, .5, "a", "b")
	for _, r := range []outcome.Result{
		{Expected: "a", Answer: "a"},
		{Expected: "a", Answer: "b"},
		{Expected: "a", Answer: "b", Flagged: true},
		{Expected: "a"},
		{Expected: "z", Answer: "a"},
		{Expected: "z", Answer: "a", Flagged: true},
		{Expected: "z"},
		{Answer: "a"},
		{Expected: "a", Failure: &outcome.Failure{Err: errors.New("no")}},
	} {
		p.Add(r)
	}
	if p.Answered != 3 || p.Right != 1 || p.Outside != 3 || p.CaughtOf != 2 || p.Interval.Low <= 0 || p.CaughtInterval.High >= 1 {
		t.Errorf("%+v", p)
	}
	var none *Promised
	none.Add(outcome.Result{Expected: "a", Answer: "a"}) // states nothing, and that is fine
}
