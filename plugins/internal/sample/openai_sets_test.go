package sample

import (
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// marked lists the answers of a sample; a question mark follows answers with a mark.
func marked(s sdk.Sample) (all []string) {
	for _, a := range s.Answers {
		if a.Reason != "" {
			a.Label += "?"
		}
		all = append(all, a.Label)
	}
	return all
}

func TestSets(t *testing.T) {
	labels := []string{"alarm", "card_lost", "weather"}
	object := sdk.Prompt{Text: "p", Labels: labels, Fields: []string{"labels"}}
	line := sdk.Prompt{Text: "p", Labels: labels, None: "none"}
	const schema = `{"type":"object","properties":{"labels":{"type":"array","items":{"type":"string","enum":["alarm","card_lost","weather"`
	tests := []struct {
		name, arguments string
		prompt          sdk.Prompt
		answer          string
		sent            string // part of the request
		want            []string
	}{
		{"JSON", "", object, `{"labels": ["weather", "alarm"]}`, schema + `]}}},"required":["labels"]`, []string{"weather", "alarm"}},
		{"JSON of Anthropic's", `, "api": "anthropic"`, object, `{"labels": ["weather", "alarm"]}`, schema, []string{"weather", "alarm"}},
		{"by force", `, "structured": "json_schema"`, line, `{"labels": ["weather", "alarm"]}`, schema + `,"none"]`, []string{"weather", "alarm"}},
		{"none fits", "", object, `{"labels": []}`, schema, []string{""}},
		{"off the list", "", object, `{"labels": ["rain", "alarm"]}`, schema, []string{"alarm", "rain?"}},
		{"all off the list", "", object, `{"labels": ["rain", "snow"]}`, schema, []string{"rain?", "snow?"}},
		{"a line", "", line, "weather; alarm", `"max_tokens":128`, []string{"weather", "alarm"}},
		{"with commas", "", line, "Card Lost, alarm", `"max_tokens":128`, []string{"card_lost", "alarm"}},
		{"to continue", `, "endpoint": "completions"`, line, "weather; alarm", `"stop":["\n"]`, []string{"weather", "alarm"}},
		{"logprobs", `, "logprobs": true`, line, "weather; alarm", `"logprobs":true`, []string{"weather", "alarm"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := openedOpenAI(t, 1, modelserver.Options{Answer: func(modelserver.Ask, int) string { return test.answer }}, "")
			f.form.Many = true
			f.reopen(t, 1, test.arguments)
			samples, err := f.one(t, sdk.Item{Prompts: []sdk.Prompt{test.prompt}})
			must.Do(t, err)
			if got := marked(samples[0]); !slices.Equal(got, test.want) {
				t.Errorf("answers %q, want %q", got, test.want)
			}
			for _, a := range samples[0].Answers {
				if a.Weight != 1 {
					t.Errorf("%s weighs %v", a.Label, a.Weight)
				}
			}
			if body := string(f.server.Asks()[0].Body); !strings.Contains(body, test.sent) {
				t.Errorf("asked %s, want in it %s", body, test.sent)
			}
		})
	}
}

// TestSetsThatCannotBeRead: a truncated set may lack labels, and vLLM's choice allows only one.
func TestSetsThatCannotBeRead(t *testing.T) {
	long := strings.Repeat("alarm; ", 40) + "weather"
	line := sdk.Prompt{Text: "p", Labels: []string{"alarm", "weather"}}
	f := openedOpenAI(t, 1, modelserver.Options{Answer: func(modelserver.Ask, int) string { return long }}, "")
	f.form.Many = true
	f.reopen(t, 1, `, "max_tokens": 9`)
	samples, err := f.one(t, sdk.Item{Prompts: []sdk.Prompt{line}})
	must.Do(t, err)
	if a := samples[0].Answers; len(a) != 1 || !strings.Contains(a[0].Reason, "cut off") {
		t.Errorf("of a set that was cut off: %+v", a)
	}
	f.reopen(t, 1, `, "structured": "choice"`)
	if _, err := f.one(t, sdk.Item{Prompts: []sdk.Prompt{line}}); sdk.CodeOf(err) != sdk.CodeInvalid {
		t.Errorf("with choice: %v", err)
	}
}
