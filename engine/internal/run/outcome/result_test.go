package outcome

import (
	"fmt"
	"slices"
	"testing"
)

// TestShorten leaves out what nobody reads of votes.
func TestShorten(t *testing.T) {
	many := func(voter string, weight func(int) float64, change ...func(i int, v *Vote)) (all []Vote) {
		for i := range 12 {
			v := Vote{Voter: voter, Answer: fmt.Sprint(i), Weight: weight(i), Accepted: true}
			for _, do := range change {
				do(i, &v)
			}
			all = append(all, v)
		}
		return all
	}
	falling := func(i int) float64 { return 1 / float64(2+i) }
	refused := func(from, to int, reason string) func(int, *Vote) {
		return func(i int, v *Vote) {
			if i >= from && i < to {
				v.Accepted, v.Reason = false, reason
			}
		}
	}
	distributed, llm := many("knn", falling), []Vote{{Voter: "llm", Answer: "a", Weight: 1}, {Voter: "llm", Answer: "b", Weight: 1}}
	tests := map[string]struct {
		votes []Vote
		kept  []int // positions; nil: all
		rest  []Rest
	}{
		"none":                   {votes: nil},
		"a model's":              {votes: slices.Concat(llm, llm, llm, llm)},
		"a few":                  {votes: distributed[:6]},
		"a distribution":         {distributed, []int{0, 1, 2, 3, 4, 5}, []Rest{{"knn", 6, 6}}},
		"beside a model's":       {slices.Concat(llm, distributed, []Vote{{Voter: "z"}}), []int{0, 1, 2, 3, 4, 5, 6, 7, 14}, []Rest{{"knn", 6, 6}}},
		"two":                    {slices.Concat(distributed, many("b", falling)), []int{0, 1, 2, 3, 4, 5, 12, 13, 14, 15, 16, 17}, []Rest{{"knn", 6, 6}, {"b", 6, 6}}},
		"the heavy are refused":  {many("knn", falling, refused(0, 8, "r")), []int{0, 1, 2, 3, 4, 5, 8}, []Rest{{"knn", 5, 3}}},
		"another reason":         {many("knn", falling, refused(7, 12, "r")), []int{0, 1, 2, 3, 4, 5, 7}, []Rest{{"knn", 5, 1}}},
		"no reason":              {many("knn", falling, refused(0, 12, "")), []int{0, 1, 2, 3, 4, 5}, []Rest{{"knn", 6, 0}}},
		"not in order":           {votes: many("knn", func(i int) float64 { return float64(i%3) / 10 })},
		"whole votes":            {votes: many("knn", func(int) float64 { return 1 })},
		"a label twice":          {votes: many("knn", falling, func(i int, v *Vote) { v.Answer = fmt.Sprint(i % 11) })},
		"a voter in two places":  {votes: slices.Concat(distributed, llm, distributed)},
		"weights that are equal": {many("knn", func(int) float64 { return .1 }), []int{0, 1, 2, 3, 4, 5}, []Rest{{"knn", 6, 6}}},
		"sure":                   {many("knn", func(i int) float64 { return float64(max(0, 1-i)) }), []int{0, 1, 2, 3, 4, 5}, []Rest{{"knn", 6, 6}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			kept, rest := Shorten(test.votes)
			var want []Vote
			for _, i := range test.kept {
				want = append(want, test.votes[i])
			}
			if test.kept == nil {
				want = test.votes
			}
			if !slices.Equal(kept, want) || !slices.Equal(rest, test.rest) {
				t.Errorf("kept %v, and %v beside", kept, rest)
			}
			if !slices.Equal(Heaviest(kept), Heaviest(test.votes)) {
				t.Errorf("results show %v in place of %v", Heaviest(kept), Heaviest(test.votes))
			}
		})
	}
}
