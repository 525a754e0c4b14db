package eval

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// model is a voter with the arguments that matter.
func model(config string) *pipeline.Pipeline {
	voter := sdk.Stage{Arguments: []sdk.Argument{{Name: "read", Default: []byte(`"plain"`)}, {Name: "nearest", Default: []byte("0")}}}
	return &pipeline.Pipeline{Stages: []*pipeline.Stage{
		{Block: "sample", Name: "llm", Enabled: true, Info: voter, Config: pipeline.Config{Public: json.RawMessage(config)}},
	}}
}

func TestDropped(t *testing.T) {
	exact, plain := model(`{"read": "exact", "api_key": "(secret)"}`), model(`{}`)
	other := &pipeline.Pipeline{Stages: []*pipeline.Stage{{Block: "sample", Name: "llm"}}}
	labels := []string{"invoice_request", "card_lost", "new pin"}
	tests := map[string]struct {
		pipeline *pipeline.Pipeline
		texts    []outcome.Text
		want     string
	}{
		"emphasis": {exact, []outcome.Text{{Answer: "**card_lost**", Count: 2}, {Answer: "**invoice_request**", Count: 7}},
			`"**invoice_request**" (7), "**card_lost**" (2); read = "plain" would read 9 of them as labels`},
		"quotes and a full stop": {exact, []outcome.Text{{Answer: `"card_lost".`, Count: 9}},
			`"\"card_lost\"." (9); read = "plain" would read 9 of them as labels`},
		"case": {exact, []outcome.Text{{Answer: "Card Lost", Count: 5}, {Answer: "NEW_PIN", Count: 4}},
			`"Card Lost" (5), "NEW_PIN" (4); read = "plain" would read 9 of them as labels`},
		"a word before it": {exact, []outcome.Text{{Answer: "Label: card_lost", Count: 9}},
			`"Label: card_lost" (9); read = "plain" would read 9 of them as labels`},
		"words beside it": {plain, []outcome.Text{{Answer: "lost! card!", Count: 9}},
			`"lost! card!" (9); nearest = 1 would read 9 of them as labels`},
		"what is not allowed is not read": {plain, []outcome.Text{{Answer: "**card_lost**, or another", Count: 4}, {Answer: "a b c d e", Count: 5}},
			`"a b c d e" (5), "**card_lost**, or another" (4)`},
		"a label that a rule drops": {exact, []outcome.Text{{Answer: "card_lost", Count: 9}},
			`"card_lost" (9)`},
		"a word for none": {plain, []outcome.Text{{Answer: "Unknown", Count: 8}, {Answer: "weather", Count: 1}},
			`"Unknown" (8), "weather" (1)`},
		"no answers": {plain, []outcome.Text{{Reason: support.NoAnswer, Count: 9}},
			`"" (9: the model wrote nothing)`},
		"cut off": {plain, []outcome.Text{{Reason: support.CutOff, Count: 9}},
			`"" (9: the answer was cut off; raise max_tokens)`},
		"a voter that reads what is written": {other, []outcome.Text{{Answer: "Card lost", Count: 9}},
			`"Card lost" (9); a voter with read = "plain" would read 9 of them as labels`},
		"three, legible": {plain, []outcome.Text{{Answer: "\x1b[31m\u202e", Count: 3}, {Answer: "x y", Count: 3}, {Answer: strings.Repeat("é", 100), Count: 2}, {Answer: "x", Count: 1}},
			"\"\uFFFD[31m\uFFFD\" (3), \"x y\" (3), \"" + strings.Repeat("é", 59) + "…\" (2)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := of(outcome.Dropped{Voter: "llm", Answers: 10, Dropped: 9, Texts: test.texts}, test.pipeline, labels).String()
			if want := "sample.llm: 9 of 10 answers do not count (90 %), such as " + test.want; got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}
