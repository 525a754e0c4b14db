package prompt_test

import (
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/prompt"
	"github.com/racflow/racflow/sdk"
)

// TestMeanings: a label's description stands beside it on a line of its own, whatever white space it contains. A
// label without a description stands alone.
func TestMeanings(t *testing.T) {
	described := map[string]sdk.Described{"alarm": {Name: "Alarm", Text: "Wake up\nat a time."}, "weather": {Name: "Forecasts"}}
	for name, c := range map[string]struct {
		stage  sdk.Stage
		config string
		want   string
	}{
		"chat":       {prompt.Chat(), `{"labels": "all"}`, "some with what they stand for behind a colon:\n- alarm: Wake up at a time.\n- balance\n- weather: Forecasts\n"},
		"neighbours": {prompt.Chat(), `{}`, "some with what they stand for behind a colon:\n- balance\n- weather: Forecasts"},
		"completion": {prompt.Completion(), `{}`, "balance, weather.\nWhat labels stand for:\nalarm: Wake up at a time.\nweather: Forecasts\n"},
		"unlisted":   {prompt.Completion(), `{"labels": false}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			stage, err := c.stage.Open(t.Context(), sdk.Setup{}, []byte(c.config))
			if err != nil {
				t.Fatal(err)
			}
			b := completionBatch
			b.Described = described
			all, err := stage.(sdk.Prompter).Prompt(t.Context(), b)
			if err != nil {
				t.Fatal(err)
			}
			text := all[0][0].Text
			if len(all[0][0].Messages) > 0 {
				text = all[0][0].Messages[0].Text
			}
			if c.want == "" && strings.Contains(text, "Wake up") || !strings.Contains(text, c.want) {
				t.Errorf("the prompt is %q, want %q in it", text, c.want)
			}
		})
	}
}
