package eval

import (
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk/support"
)

func TestDropped(t *testing.T) {
	tests := map[string]struct {
		texts []outcome.Text
		want  string
	}{
		"emphasis": {[]outcome.Text{{Answer: "**card_lost**", Count: 2}, {Answer: "**invoice_request**", Count: 7}},
			`"**invoice_request**" (7), "**card_lost**" (2)`},
		"a word for none": {[]outcome.Text{{Answer: "Unknown", Count: 8}, {Answer: "weather", Count: 1}},
			`"Unknown" (8), "weather" (1)`},
		"no answers": {[]outcome.Text{{Reason: support.NoAnswer, Count: 9}},
			`"" (9: the model wrote nothing)`},
		"cut off": {[]outcome.Text{{Reason: support.CutOff, Count: 9}},
			`"" (9: the answer was cut off; raise max_tokens)`},
		"three, legible": {[]outcome.Text{{Answer: "\x1b[31m\u202e", Count: 3}, {Answer: "x y", Count: 3}, {Answer: strings.Repeat("é", 100), Count: 2}, {Answer: "x", Count: 1}},
			"\"\uFFFD[31m\uFFFD\" (3), \"x y\" (3), \"" + strings.Repeat("é", 59) + "…\" (2)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := droppedReport(outcome.Dropped{Voter: "llm", Answers: 10, Dropped: 9, Texts: test.texts}).String()
			if want := "sample.llm: 9 of 10 answers do not count (90 %), such as " + test.want; got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}
