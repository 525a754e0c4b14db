package outcome

import (
	"fmt"
	"testing"

	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestByChance: a voter is named if it agrees with the others no more than by chance. Three items in four are of the
// label a.
func TestByChance(t *testing.T) {
	for name, test := range map[string]struct {
		items int
		llm   func(i int) string
		want  string
	}{
		"always the frequent label":  {40, func(int) string { return "a" }, "llm 30 of 40, by chance 0.75"},
		"never right":                {40, func(i int) string { return []string{"b", "b", "b", "a"}[i%4] }, "llm 0 of 40, by chance 0.38"},
		"right on half":              {40, func(i int) string { return []string{"a", "b", "a", "b"}[i%4] }, ""},
		"the same":                   {40, func(i int) string { return []string{"a", "a", "a", "b"}[i%4] }, ""},
		"too few items":              {9, func(int) string { return "a" }, ""},
		"nothing that counts":        {40, func(int) string { return "" }, ""},
		"on every fourth item alone": {80, func(i int) string { return []string{"b", "", "", ""}[(i+i/4)%4] }, "llm 5 of 20, by chance 0.25"},
	} {
		t.Run(name, func(t *testing.T) {
			all := Totals{Callers: []string{"llm"}}
			for i := range test.items {
				label, other := "a", "b"
				if i%4 == 3 {
					label, other = "b", "a"
				}
				votes := []result.Vote{
					{Voter: "near", Answer: other, Weight: .3, Accepted: true}, {Voter: "near", Answer: label, Weight: .7, Accepted: true},
					{Voter: "linear", Answer: label, Weight: 1, Accepted: true},
				}
				if answer := test.llm(i); answer != "" {
					votes = append(votes, result.Vote{Voter: "llm", Answer: answer, Weight: 1, Accepted: true})
				} else {
					votes = append(votes, result.Vote{Voter: "llm", Answer: "c", Weight: 1})
				}
				all.countAgreement(votes)
			}
			got := ""
			for _, a := range all.ByChance() {
				got += fmt.Sprintf("%s %d of %d, by chance %.2f", a.Voter, a.Same, a.Items, a.Chance())
			}
			must.Equal(t, "named", test.want, got)
		})
	}
}
