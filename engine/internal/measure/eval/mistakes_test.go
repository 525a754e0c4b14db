package eval

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
)

// TestMistakes: the surest wrong answers are kept, with the neighbours that support them. Equally
// sure answers stay in the order of the input.
func TestMistakes(t *testing.T) {
	found := []sdk.Candidate{{ID: "r1", Label: "b", Score: .9, Text: strings.Repeat("é", 300)}, {ID: "r2", Label: "a", Score: .8}}
	for i := range 9 {
		found = append(found, sdk.Candidate{ID: fmt.Sprint("n", i), Label: "b", Score: .5, Text: "short"})
	}
	m := NewMistakes(4, "a", "b")
	for i, r := range []outcome.Result{
		{Expected: "a", Answer: "a", Verdict: result.Verdict{Confidence: 1}}, // right
		{Expected: "a", Answer: "b", Verdict: result.Verdict{Confidence: .7}},
		{Expected: "a", Failure: &outcome.Failure{Stage: "sample.llm", Err: errors.New("down")}},
		{Expected: "a", Verdict: result.Verdict{Reason: "no voter answered", Flagged: true}},
		{Expected: "out of scope"}, // rightly left without an answer
		{Expected: "a", Answer: "b", Verdict: result.Verdict{Agreement: .9}, Candidates: found},
		{Expected: "a", Answer: "b", Verdict: result.Verdict{Confidence: .7, Agreement: 1}},
		{Answer: "b", Verdict: result.Verdict{Confidence: 1}}, // nothing expected
		{Expected: "a", Answer: "b", Verdict: result.Verdict{Confidence: .2}},
		{Expected: "a", Answer: "b", Verdict: result.Verdict{Confidence: .1}},
	} {
		r.ID, r.Line = fmt.Sprint(i), i+2
		m.Add(r)
	}
	all := m.Report()
	var got []string
	for _, one := range all {
		got = append(got, fmt.Sprint(one.ID, " ", one.Line, " ", one.Answer, " ", one.Confidence, " ", one.Agreement))
	}
	if d := cmp.Diff([]string{"5 7 b 0 0.9", "1 3 b 0.7 0", "6 8 b 0.7 1", "8 10 b 0.2 0"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	near := all[0].Neighbours
	if len(near) != maxNeighbours || near[0].ID != "r1" || near[1].ID != "n0" || len([]rune(near[0].Text)) != maxNeighbourText || near[4].Text != "short" {
		t.Errorf("neighbours %+v", near)
	}

	m = NewMistakes(9, "a", "b")
	m.Add(outcome.Result{Expected: "a", Failure: &outcome.Failure{Stage: "sample.llm", Err: errors.New("down")}, Candidates: found})
	m.Add(outcome.Result{Expected: "a", Verdict: result.Verdict{Reason: "no voter answered", Flagged: true}})
	want := []Mistake{{Expected: "a", Error: "sample.llm: down"}, {Expected: "a", Reason: "no voter answered", Flagged: true}}
	if d := cmp.Diff(want, m.Report()); d != "" {
		t.Errorf("without answers (-want +got):\n%s", d)
	}
	if none := NewMistakes(0); none.worst != nil {
		t.Error("asked for none")
	} else if none.Add(outcome.Result{Expected: "a", Answer: "b"}); none.Report() != nil {
		t.Errorf("got %+v", none.Report())
	}
}

// TestConfusions: pairs are sorted by frequency. Failed items do not count.
func TestConfusions(t *testing.T) {
	c := NewCounter("a", "b")
	for _, r := range []outcome.Result{
		{Expected: "b", Answer: "a"}, {Expected: "a", Answer: "b"}, {Expected: "a", Answer: "b"}, {Expected: "a"}, {Expected: "a", Answer: "a"},
		{Expected: "x", Answer: "b"}, {Expected: "x"}, {Expected: "a", Failure: &outcome.Failure{Err: errors.New("down")}},
	} {
		c.Add(r)
	}
	want := []Confused{{"a", "b", 2}, {"a", "", 1}, {"b", "a", 1}, {"x", "b", 1}}
	if d := cmp.Diff(want, c.Report(outcome.Totals{}).Confused); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
