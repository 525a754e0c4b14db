package cli

import (
	"path/filepath"
	"testing"
)

// voted is a result with the parts of its votes that this test checks.
type voted struct {
	ID     string
	Answer *string
	Votes  []struct {
		Voter, Answer string
		Accepted      bool
	}
	Flagged bool
}

// TestRecordedAnswersVote runs the example with annotators, and then uses the results of that run as
// recorded votes.
func TestRecordedAnswersVote(t *testing.T) {
	dir, path := t.TempDir(), absolute(t, "../../examples/recorded/vote.hcl")
	run := func(args ...string) map[string]voted {
		out, _ := good(t, racflow(t, dir, append(append([]string{"run", "--limit", "40", "-var", "embedder=hashing"}, args...), path)...))
		write(t, dir, "earlier.jsonl", out)
		results := map[string]voted{}
		for _, r := range jsonLines[voted](t, out) {
			results[r.ID] = r
		}
		return results
	}
	first := run()
	again := run("-var", "answers="+filepath.Join(dir, "earlier.jsonl"))
	if len(first) != 40 || len(again) != 40 {
		t.Fatalf("%d and %d results", len(first), len(again))
	}
	people := func(r voted) (n int) {
		for _, v := range r.Votes {
			if v.Voter != "neighbours" {
				n++
			}
		}
		return n
	}
	for id, votes := range map[string]int{"test-0001": 2, "test-0003": 1, "test-0005": 1, "test-0017": 2, "test-0031": 0} {
		if got := people(first[id]); got != votes {
			t.Errorf("%s: %d people voted, want %d: %+v", id, got, votes, first[id])
		}
	}
	if r := first["test-0001"]; r.Answer == nil || *r.Answer != "complaint_staff" {
		t.Errorf("two against the neighbours: %+v", r)
	}
	if v := first["test-0017"].Votes; v[len(v)-1].Answer != "" || !v[len(v)-1].Accepted {
		t.Errorf("none of these is no vote: %+v", v)
	}
	for id, r := range first {
		if other := again[id]; people(r) != people(other) || r.Flagged != other.Flagged || (r.Answer == nil) != (other.Answer == nil) || r.Answer != nil && *r.Answer != *other.Answer {
			t.Errorf("%s: with the people's answers %+v, with those of the run %+v", id, r, other)
		}
	}
}
