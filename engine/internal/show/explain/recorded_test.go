package explain

import (
	"math"
	"testing"

	"github.com/racflow/racflow/engine/internal/run/result"
)

// TestMargin: what a run does not keep of a distribution went to other labels.
func TestMargin(t *testing.T) {
	for name, test := range map[string]struct {
		votes []result.Vote
		want  float64
	}{
		"none":                {nil, 0},
		"a model":             {[]result.Vote{{Voter: "llm", Answer: "a", Weight: 1, Accepted: true}, {Voter: "llm", Answer: "a", Weight: 1, Accepted: true}, {Voter: "llm", Answer: "b", Weight: 1}}, 1},
		"a distribution":      {[]result.Vote{{Voter: "knn", Answer: "a", Weight: .5, Accepted: true}, {Voter: "knn", Answer: "b", Weight: .3, Accepted: true}}, .2},
		"two voters disagree": {[]result.Vote{{Voter: "x", Answer: "a", Weight: 1, Accepted: true}, {Voter: "y", Answer: "b", Weight: 1, Accepted: true}}, 0},
	} {
		if got := margin(test.votes); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
