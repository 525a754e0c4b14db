package explain

import (
	"math"
	"testing"

	"github.com/racflow/racflow/engine/internal/run/result"
	"github.com/racflow/racflow/sdk"
)

// TestMargin: what a run does not keep of a distribution went to other labels.
func TestMargin(t *testing.T) {
	for name, test := range map[string]struct {
		votes []result.Vote
		want  float64
		many  bool
	}{
		"none":                {nil, 0, false},
		"a model":             {[]result.Vote{{Voter: "llm", Answer: "a", Weight: 1, Accepted: true}, {Voter: "llm", Answer: "a", Weight: 1, Accepted: true}, {Voter: "llm", Answer: "b", Weight: 1}}, 1, false},
		"a distribution":      {[]result.Vote{{Voter: "knn", Answer: "a", Weight: .5, Accepted: true}, {Voter: "knn", Answer: "b", Weight: .3, Accepted: true}}, .2, false},
		"two voters disagree": {[]result.Vote{{Voter: "x", Answer: "a", Weight: 1, Accepted: true}, {Voter: "y", Answer: "b", Weight: 1, Accepted: true}}, 0, false},
		"a set":               {[]result.Vote{{Voter: "x", Answer: "a", Weight: .9, Accepted: true}, {Voter: "x", Answer: "b", Weight: .6, Accepted: true}, {Voter: "x", Answer: "c", Weight: .1, Accepted: true}}, .2, true},
	} {
		if got := margin(sdk.LabelForm{Many: test.many}, test.votes); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
