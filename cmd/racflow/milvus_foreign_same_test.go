package main

import (
	"math"
	"slices"
	"testing"

	"github.com/racflow/racflow/engine/result"
)

// sameCandidates compares lists of candidates: their cosines place by place, so that only those that tie
// may change places, and what each is; its id where the collection has it.
func sameCandidates(t *testing.T, what string, got, want []result.Result, ids bool) {
	t.Helper()
	if len(got) == 0 || len(got) != len(want) {
		t.Fatalf("%s: %d items, want %d", what, len(got), len(want))
	}
	near := func(a, b result.Candidate) bool {
		return a.Dense != nil && b.Dense != nil && math.Abs(*a.Dense-*b.Dense) < 1e-4
	}
	for i := range got {
		found, wanted := got[i].Candidates, want[i].Candidates
		if len(wanted) == 0 || len(found) != len(wanted) {
			t.Errorf("%s: item %s has %d candidates, want %d", what, got[i].ID, len(found), len(wanted))
			continue
		}
		for place, c := range found {
			if !near(c, wanted[place]) {
				t.Errorf("%s: item %s at %d: %+v, want %+v", what, got[i].ID, place, c, wanted[place])
			}
			at := slices.IndexFunc(wanted, func(w result.Candidate) bool { return w.Text == c.Text })
			switch {
			case at < 0 && near(c, wanted[len(wanted)-1]): // it ties with the last one
			case at < 0:
				t.Errorf("%s: item %s: %q is not among those wanted", what, got[i].ID, c.Text)
			case !near(c, wanted[at]) || c.Label != wanted[at].Label || ids && c.ID != wanted[at].ID:
				t.Errorf("%s: item %s: %+v, want %+v", what, got[i].ID, c, wanted[at])
			}
		}
	}
}

// overlap is the share of the wanted candidates that were found.
func overlap(got, want []result.Result) float64 {
	shared, all := 0, 0
	for i := range want {
		for _, c := range want[i].Candidates {
			all++
			if slices.ContainsFunc(got[i].Candidates, func(g result.Candidate) bool { return g.Text == c.Text }) {
				shared++
			}
		}
	}
	return float64(shared) / float64(all)
}
