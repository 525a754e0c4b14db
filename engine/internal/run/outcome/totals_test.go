package outcome

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestDropped counts a model's answers separately from a distribution.
func TestDropped(t *testing.T) {
	distribution := []result.Vote{{Voter: "knn", Answer: "a", Weight: .6}, {Voter: "knn", Answer: "b", Weight: .4, Accepted: true}}
	tests := map[string]struct {
		dropped, of int
		want        bool
	}{
		"none":        {0, 100, false},
		"4 percent":   {4, 100, false},
		"5 percent":   {5, 100, false},
		"6 percent":   {6, 100, true},
		"all":         {1680, 1680, true},
		"one of many": {1, 1000, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			// A distribution with one label looks like an answer.
			totals := Totals{Distributions: []string{"knn"}}
			totals.Add(Result{Answer: "b", Votes: distribution})
			totals.Add(Result{Votes: []result.Vote{{Voter: "knn", Answer: "a", Weight: 1}}})
			for i := range test.of {
				vote := result.Vote{Voter: "llm", Answer: "a", Weight: 1, Accepted: i >= test.dropped}
				if !vote.Accepted {
					vote.Answer = "**a**"
				}
				totals.Add(Result{Answer: "a", Votes: append(distribution[:2:2], vote)})
			}
			all := totals.Dropped()
			if got := len(all) == 1; got != test.want || len(all) > 1 {
				t.Fatalf("dropped: %+v", all)
			}
			if test.want {
				want := []Dropped{{Voter: "llm", Answers: test.of, Dropped: test.dropped, Texts: []Text{{Answer: "**a**", Count: test.dropped}}}}
				must.Equal(t, "dropped", want, all, cmpopts.IgnoreUnexported(Dropped{}))
			}
		})
	}
}

// A model that writes a new long text each time takes little memory.
func TestDroppedIsBounded(t *testing.T) {
	var totals Totals
	long := strings.Repeat("é", maxText)
	for i := range 1_000_000 {
		text := fmt.Sprint(i)
		if i%4 == 0 {
			text = "the same"
		} else if i < 2000 {
			text += long
		}
		totals.Add(Result{Answer: "x", Votes: []result.Vote{{Voter: "llm", Answer: text, Weight: 1}}})
	}
	d := totals.Dropped()[0]
	bytes := 0
	for _, text := range d.Texts {
		bytes += len(text.Answer)
	}
	must.Equal(t, "answers, texts, their positions, the first text", []any{1_000_000, maxTexts, maxTexts, Text{Answer: "the same", Count: 250_000}}, []any{d.Dropped, len(d.Texts), len(d.positions), d.Texts[0]})
	if bytes > maxTexts*(maxText+3) {
		t.Errorf("the texts have %d bytes", bytes)
	}
}
