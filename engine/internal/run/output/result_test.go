package output

import (
	"errors"
	"testing"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/result"
)

func TestRunnerUp(t *testing.T) {
	spread := []result.Vote{
		{Voter: "knn", Answer: "a", Weight: 0.6, Accepted: true}, {Voter: "knn", Answer: "b", Weight: 0.3, Accepted: true}, {Voter: "knn", Answer: "c", Weight: 0.1, Accepted: true},
	}
	llm := func(accepted bool) result.Vote {
		return result.Vote{Voter: "llm", Answer: "c", Weight: 1, Accepted: accepted}
	}
	for name, c := range map[string]struct {
		result outcome.Result
		want   string
	}{
		"a distribution":            {outcome.Result{Answer: "a", Votes: spread}, "b"},
		"another voter":             {outcome.Result{Answer: "a", Votes: append(spread[:3:3], llm(true))}, "c"},
		"the elected is not first":  {outcome.Result{Answer: "c", Votes: spread}, "a"},
		"what is not accepted":      {outcome.Result{Answer: "a", Votes: append(spread[:3:3], llm(false))}, "b"},
		"all agree":                 {outcome.Result{Answer: "c", Votes: []result.Vote{llm(true)}}, ""},
		"no answer":                 {outcome.Result{Votes: spread}, ""},
		"answers that are no label": {outcome.Result{Answer: "a", FreeText: true, Votes: spread}, ""},
		"a failure":                 {outcome.Result{Answer: "a", Votes: spread, Failure: &outcome.Failure{Err: errors.New("x")}}, ""},
	} {
		if got := Of(c.result); got.RunnerUp != c.want {
			t.Errorf("%s: %q, want %q", name, got.RunnerUp, c.want)
		}
	}
}
