package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/eval"
)

// TestMistakes: confused pairs, and mistakes with the neighbours that speak for them. What
// a terminal would obey is taken out.
func TestMistakes(t *testing.T) {
	r := eval.Report{
		Scored:   20,
		Confused: []eval.Confused{{Expected: "card_lost", Answered: "card_stolen", Items: 3}, {Expected: "card_lost", Items: 2}},
		Errors: []eval.Mistake{
			{Line: 4, ID: "q3", Text: "where is\nmy card\x1b[2J", Expected: "card_lost", Answer: "card_stolen", Confidence: .9312, Flagged: true, Neighbours: []eval.Neighbour{
				{ID: "r17", Label: "card_stolen", Score: .8125, Text: "my card\x07 was stolen"}}},
			{Line: 5, ID: "q4", Text: "hm", Expected: "card_lost", Answer: "top_up", Agreement: .5},
			{Line: 6, ID: "q5", Text: "hm", Expected: "card_lost", Reason: "no voter answered"},
			{Line: 7, ID: "q6", Text: "hm", Expected: "card_lost", Error: "sample.llm: down"},
		},
	}
	for i := range 9 {
		r.Confused = append(r.Confused, eval.Confused{Expected: fmt.Sprint("label", i), Answered: "top_up", Items: 1})
	}
	var out strings.Builder
	if err := Eval(&out, r); err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(out.String(), "BUSY (s)\n")
	if d := cmp.Diff(mistaken, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

const mistaken = `
EXPECTED   ANSWERED INSTEAD  ITEMS
card_lost  card_stolen       3
card_lost  no answer         2
label0     top_up            1
label1     top_up            1
label2     top_up            1
label3     top_up            1
label4     top_up            1
label5     top_up            1
label6     top_up            1
label7     top_up            1
... and 1 pair more; --json has them all

LABEL (worst first)  F1  PRECISION  RECALL  ITEMS

ERRORS (the surest first)

q3 (line 4): where is my card�[2J
  expected  card_lost
  answered  card_stolen, confidence 0.9312, flagged
    0.8125  r17: my card� was stolen

q4 (line 5): hm
  expected  card_lost
  answered  top_up, agreement 0.5000

q5 (line 6): hm
  expected  card_lost
  answered  no answer: no voter answered

q6 (line 7): hm
  expected  card_lost
  answered  failed: sample.llm: down
`
