package cli

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/engine/result"
)

// sameCandidates compares lists of candidates. Their cosines must agree position by position, so that
// only ties may change places. Their contents must agree, too, and their ids if the collection has
// them.
func sameCandidates(t *testing.T, what string, got, want []result.Result, ids bool) {
	t.Helper()
	if len(got) == 0 || len(got) != len(want) {
		t.Fatalf("%s: %d items, want %d", what, len(got), len(want))
	}
	for i := range got {
		if wrong := difference(got[i].Candidates, want[i].Candidates, ids); wrong != "" {
			t.Errorf("%s: item %s: %s", what, got[i].ID, wrong)
			return // one message is enough
		}
	}
}

func difference(got, want []result.Candidate, ids bool) string {
	near := func(a, b result.Candidate) bool {
		return a.Dense != nil && b.Dense != nil && math.Abs(*a.Dense-*b.Dense) < 1e-4
	}
	if len(want) == 0 || len(got) != len(want) {
		return fmt.Sprintf("%d candidates, want %d", len(got), len(want))
	}
	for place, c := range got {
		if !near(c, want[place]) {
			return fmt.Sprintf("at %d is %q with %v, want %q with %v", place, c.Text, c.Score, want[place].Text, want[place].Score)
		}
		at := slices.IndexFunc(want, func(w result.Candidate) bool { return w.Text == c.Text })
		switch {
		case at < 0 && near(c, want[len(want)-1]): // a tie with the last one
		case at < 0:
			return fmt.Sprintf("%q is not among those wanted", c.Text)
		case !near(c, want[at]) || c.Label != want[at].Label || ids && c.ID != want[at].ID:
			return fmt.Sprintf("%+v, want %+v", c, want[at])
		}
	}
	return ""
}

// sameVotes compares answers and the weights of votes. A voter that learns splits the rows by their
// ids. If the collection has other ids, its weights differ a little.
func sameVotes(t *testing.T, got, want []result.Result, ids bool) {
	t.Helper()
	if ids {
		if d := cmp.Diff(got, want, cmpopts.EquateApprox(0, 1e-3)); d != "" {
			t.Errorf("votes (-attached +embedded):\n%.2000s", d)
		}
		return
	}
	same := 0
	for i := range min(len(got), len(want)) {
		if got[i].Answer == want[i].Answer {
			same++
		}
	}
	if len(got) != len(want) || same < len(want)*19/20 {
		t.Errorf("%d of %d answers are the same", same, len(want))
	}
}

// overlap returns the share of the wanted candidates that were found.
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
