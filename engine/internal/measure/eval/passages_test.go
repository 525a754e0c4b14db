package eval

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
)

func list(ids ...string) []sdk.Candidate {
	var all []sdk.Candidate
	for _, id := range ids {
		all = append(all, sdk.Candidate{ID: id})
	}
	return all
}

func gold(ids ...string) []source.Gold {
	var all []source.Gold
	for _, id := range ids {
		all = append(all, source.Gold{IDs: []string{id}, Grade: 1})
	}
	return all
}

func TestRank(t *testing.T) {
	log2 := math.Log2
	eleven := list("x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "a")
	graded := []source.Gold{{IDs: []string{"a"}, Grade: 1}, {IDs: []string{"b"}, Grade: 3}, {IDs: []string{"c"}, Grade: 2}}
	quoted := []source.Gold{{IDs: []string{"g.md"}, Quote: "the port is 8080", Grade: 1}, {IDs: []string{"whole.md"}, Quote: "here", Grade: 1}}
	chunk := func(id, document, text string) sdk.Candidate {
		return sdk.Candidate{ID: id, Text: text, Meta: sdk.Meta{"document": document}}
	}
	tests := []struct {
		name   string
		gold   []source.Gold
		list   []sdk.Candidate
		places []int
		ndcg   float64
	}{
		{"first", gold("a"), list("a", "b"), []int{1}, 1},
		{"third", gold("a"), list("x", "y", "a"), []int{3}, 1 / log2(4)},
		{"one of two", gold("a", "b"), list("x", "b"), []int{2}, (1 / log2(3)) / (1 + 1/log2(3))},
		{"none", gold("a"), list("x"), nil, 0},
		{"an empty list", gold("a"), nil, nil, 0},
		{"beyond the cut of nDCG", gold("a"), eleven, []int{11}, 0},
		{"graded", graded, list("a", "b", "x", "c"), []int{1, 2, 4},
			(1 + 3/log2(3) + 2/log2(5)) / (3 + 2/log2(3) + 1/log2(4))},
		{"any of several will do, once", []source.Gold{{IDs: []string{"a", "b"}, Grade: 1}, {IDs: []string{"c"}, Grade: 1}}, list("b", "a", "c"), []int{1, 3},
			(1 + 1/log2(4)) / (1 + 1/log2(3))},
		{"quoted, in whichever chunk of the document", quoted, []sdk.Candidate{
			chunk("g.md#3", "g.md", "the port is 1"), chunk("h.md#0", "h.md", "the port is 8080"), chunk("g.md#0", "g.md", "so the\n port  is 8080."), chunk("g.md#1", "g.md", "the port is 8080"), {ID: "whole.md", Text: "here"}},
			[]int{3, 5}, (1/log2(4) + 1/log2(6)) / (1 + 1/log2(3))},
		{"more passages than the cut", gold("a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"),
			list("a", "b", "c", "d", "e", "f", "g", "h", "i", "j"), []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := rank(test.gold, test.list)
			if d := cmp.Diff(test.places, r.places); d != "" {
				t.Errorf("places (-want +got):\n%s", d)
			}
			if math.Abs(r.ndcg-test.ndcg) > 1e-12 {
				t.Errorf("nDCG %v, want %v", r.ndcg, test.ndcg)
			}
		})
	}
}

func TestPassages(t *testing.T) {
	p := NewPassages([]int{3, 1, 3})
	two := func(near, best []sdk.Candidate) []outcome.List {
		return []outcome.List{{Stage: "retrieve.near", Candidates: near}, {Stage: "rerank.best", Candidates: best}}
	}
	down := &outcome.Failure{Err: errors.New("down")}
	for _, r := range []outcome.Result{
		{Gold: gold("a", "b"), Lists: two(list("x", "a", "y", "b"), list("a", "b"))},
		{Gold: gold("c", "c"), Lists: two(list("c"), list("c"))}, // named twice
		{Gold: gold("d", "gone"), Failure: down, Lists: []outcome.List{{Stage: "retrieve.near", Candidates: list("d")}}},
		{Gold: []source.Gold{{IDs: []string{"e", "lost"}, Grade: 2}}, Failure: down},
		{Lists: two(list("x"), list("x"))},                                            // no gold
		{Gold: []source.Gold{{IDs: []string{"x"}}}, Lists: two(list("x"), list("x"))}, // nothing relevant
	} {
		p.Add(r)
	}
	unseen := []source.Gold{{IDs: []string{"gone"}, Grade: 1}, {IDs: []string{"e", "lost"}, Grade: 2}}
	if d := cmp.Diff(unseen, p.Unseen()); d != "" {
		t.Errorf("unseen (-want +got):\n%s", d)
	}
	got := p.Report(unseen[:1])
	log2 := math.Log2
	ideal := 1 + 1/log2(3)
	want := &Retrieval{
		Items: 4, Without: 2, Failed: 2, Passages: 6, Absent: 1, Example: "gone",
		Stages: []Ranking{
			// Shares at 1: 0, 1, 1/2, 0; at 3: 1/2, 1, 1/2, 0; at 20: 1, 1, 1/2, 0.
			{Stage: "retrieve.near", Longest: 4, Recall: []Recall{{1, 1.5 / 4}, {3, 2. / 4}}, Failure: 1 - 2.5/4,
				NDCG: ((1/log2(3)+1/log2(5))/ideal + 1 + 1/ideal) / 4, MRR: (1./2 + 1 + 1) / 4},
			{Stage: "rerank.best", Longest: 2, Recall: []Recall{{1, 1.5 / 4}, {3, 2. / 4}}, Failure: 1 - 2./4,
				NDCG: 2. / 4, MRR: 2. / 4},
		},
	}
	if d := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if NewPassages(Cuts).Report(nil) != nil {
		t.Error("a report on no gold passages")
	}
}

// Answers without a flag are counted, and so are caught out-of-scope rows.
func TestPromised(t *testing.T) {
	p := NewPromised(.9, .95, .5, .1, "a", "b")
	for _, r := range []outcome.Result{
		{Expected: "a", Answer: "a"},
		{Expected: "a", Answer: "b"},
		{Expected: "a", Answer: "b", Verdict: result.Verdict{Flagged: true}},
		{Expected: "a"},
		{Expected: "z", Answer: "a"},
		{Expected: "z", Answer: "a", Verdict: result.Verdict{Flagged: true}},
		{Expected: "z"},
		{Answer: "a"},
		{Expected: "a", Failure: &outcome.Failure{Err: errors.New("no")}},
	} {
		p.Add(r)
	}
	if p.Answered != 3 || p.Right != 1 || p.Outside != 3 || p.CaughtOf != 2 || p.Interval.Low <= 0 || p.CaughtInterval.High >= 1 || !p.Exceeded {
		t.Errorf("%+v", p)
	}
	for range 20 {
		p.Add(outcome.Result{Expected: "a", Answer: "a"})
	}
	if p.Exceeded { // 3 of 28, which may be one in ten
		t.Errorf("%+v", p)
	}
	var none *Promised
	none.Add(outcome.Result{Expected: "a", Answer: "a"}) // states nothing, and does not fail
}
