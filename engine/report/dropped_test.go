package report

import (
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/sdk"
)

func TestDropped(t *testing.T) {
	openai := sdk.Stage{Arguments: []sdk.Argument{{Name: "read"}, {Name: "nearest"}}}
	labels := []string{"invoice_request", "card_lost", "new pin"}
	tests := map[string]struct {
		stage sdk.Stage
		texts []outcome.Text
		want  string
	}{
		"emphasis": {openai, []outcome.Text{{Answer: "**card_lost**", Count: 2}, {Answer: "**invoice_request**", Count: 7}},
			`sample.llm: 9 of 10 answers do not count, such as "**invoice_request**" (7), "**card_lost**" (2); read = "plain" would read 9 of them as labels`},
		"quotes and a full stop": {openai, []outcome.Text{{Answer: `"card_lost".`, Count: 9}},
			`sample.llm: 9 of 10 answers do not count, such as "\"card_lost\"." (9); read = "plain" would read 9 of them as labels`},
		"case": {openai, []outcome.Text{{Answer: "Card Lost", Count: 5}, {Answer: "NEW_PIN", Count: 4}},
			`sample.llm: 9 of 10 answers do not count, such as "Card Lost" (5), "NEW_PIN" (4); read = "plain" would read 9 of them as labels`},
		"some of each": {openai, []outcome.Text{{Answer: "NewPin", Count: 3}, {Answer: "**new pin**", Count: 6}},
			`sample.llm: 9 of 10 answers do not count, such as "**new pin**" (6), "NewPin" (3); read = "plain" would read 9 of them as labels`},
		"a word before it": {openai, []outcome.Text{{Answer: "Label: card_lost", Count: 9}},
			`sample.llm: 9 of 10 answers do not count, such as "Label: card_lost" (9); read = "plain" would read 9 of them as labels`},
		"words beside it": {openai, []outcome.Text{{Answer: "lost! card!", Count: 9}},
			`sample.llm: 9 of 10 answers do not count, such as "lost! card!" (9); nearest = 1 would read 9 of them as labels`},
		"a fence": {openai, []outcome.Text{{Answer: "```", Count: 9}},
			"sample.llm: 9 of 10 answers do not count, such as \"```\" (9)"},
		"a label that a rule drops": {openai, []outcome.Text{{Answer: "card_lost", Count: 9}},
			`sample.llm: 9 of 10 answers do not count, such as "card_lost" (9)`},
		"no answers": {openai, []outcome.Text{{Reason: "the model wrote nothing", Count: 9}},
			`sample.llm: 9 of 10 answers do not count, such as "" (9: the model wrote nothing)`},
		"a voter that reads what is written": {sdk.Stage{}, []outcome.Text{{Answer: "Card lost", Count: 9}},
			`sample.llm: 9 of 10 answers do not count, such as "Card lost" (9); a voter with read = "plain" would read 9 of them as labels`},
		"three, legible": {openai, []outcome.Text{{Answer: "\x1b[31m\u202e", Count: 3}, {Answer: "x y", Count: 3}, {Answer: strings.Repeat("é", 100), Count: 2}, {Answer: "x", Count: 1}},
			"sample.llm: 9 of 10 answers do not count, such as \"\uFFFD[31m\uFFFD\" (3), \"x y\" (3), \"" + strings.Repeat("é", 59) + "…\" (2)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Dropped(outcome.Dropped{Voter: "llm", Answers: 10, Dropped: 9, Texts: test.texts}, test.stage, labels); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}
