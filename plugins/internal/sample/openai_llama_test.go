package sample

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
	"github.com/racflow/racflow/sdk/support"
)

// TestRealServer asks llama.cpp, as started by .ci/llm. Its model is noise: only the server's own behaviour can be
// checked.
func TestRealServer(t *testing.T) {
	address := os.Getenv("RACFLOW_TEST_LLM")
	if address == "" {
		t.Skip("RACFLOW_TEST_LLM is not set; .ci/llm with go test ... sets it")
	}
	allowed := []string{"card_lost", "pin change", `an "odd" one`}
	beginning := strings.Repeat("Some examples that are the same for all items. ", 20)
	text := sdk.Prompt{Text: beginning + "Text: I lost my card\nLabel:", Labels: allowed, None: "none of these", Fields: []string{"label"}}
	chat := text
	chat.Text, chat.Messages = "", []sdk.Message{
		{Role: sdk.MessageSystem, Text: beginning}, {Role: sdk.MessageUser, Text: "where is my PIN"},
		{Role: sdk.MessageAssistant, Text: `{"label": "pin change"}`}, {Role: sdk.MessageUser, Text: "I lost my card"},
	}
	plain := text
	plain.Fields = nil
	for _, test := range []struct {
		name, arguments string
		prompt          sdk.Prompt
		held            bool // the server allows only the labels
	}{
		{"chat", ``, chat, true},
		{"a text as a chat", ``, text, true},
		{"completion", `, "endpoint": "completions"`, text, true},
		{"a plain text, held to a schema", `, "structured": "json_schema"`, plain, true},
		{"a plain text", `, "endpoint": "completions", "max_tokens": 8`, plain, false},
		{"with logprobs", `, "logprobs": true`, chat, true},
		{"with a seed", `, "seed": 5, "temperature": 0`, chat, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			host := &apitest.Host{}
			config := fmt.Sprintf(`{"base_url": %q, "model": "tiny"%s}`, address, test.arguments)
			open := func(samples int) *openAIVoter {
				stage, err := OpenAI().Open(t.Context(), sdk.Setup{Samples: samples, Host: host}, []byte(config))
				must.Do(t, err)
				return stage.(*openAIVoter)
			}
			sample := func(samples int) []sdk.Sample {
				all, err := open(samples).Sample(t.Context(), sdk.Batch{Items: []sdk.Item{{Prompts: []sdk.Prompt{test.prompt}}}})
				must.Do(t, err)
				return all[0]
			}
			three := sample(3)
			if len(three) != 3 {
				t.Fatalf("%d samples", len(three))
			}
			for i, s := range three {
				if a := s.Answers[0]; test.held && (a.Reason != "" || a.Label != "" && !slices.Contains(allowed, a.Label)) {
					t.Errorf("sample %d: %+v is not allowed", i, a)
				}
				if w := s.Answers[0].Weight; strings.Contains(test.arguments, "logprobs") && (w <= 0 || w >= 1) {
					t.Errorf("sample %d: weight %v is no probability", i, w)
				}
			}
			// A fourth sample is requested alone: the server has the prompt in its cache.
			four := sample(4)
			if u := four[3].Usage; u.CachedTokens == 0 || u.CachedTokens > u.InputTokens || u.InputTokens < 200 {
				t.Errorf("the second request: %+v", u)
			}
			if got := len(host.Calls()); got != 2 {
				t.Errorf("%d requests for 3 samples and one more", got)
			}
			if test.held {
				for _, value := range host.Cached() {
					checkSchema(t, value, allowed)
				}
			}
		})
	}
	t.Run("a forecast of more choices than it has slots", func(t *testing.T) {
		host := &apitest.Host{Probes: true}
		open := func() *openAIVoter {
			stage, err := OpenAI().Open(t.Context(), sdk.Setup{Samples: 6, Host: host}, fmt.Appendf(nil, `{"base_url": %q, "model": "tiny", "max_tokens": 4}`, address))
			must.Do(t, err)
			return stage.(*openAIVoter)
		}
		_, err := open().Models()[0].Probe(t.Context())
		must.Do(t, err)
		voter, item := open(), sdk.Item{Prompts: []sdk.Prompt{plain}}
		said, err := voter.Forecast(item)
		must.Do(t, err)
		calls, spent := len(host.Calls()), host.Spent(t).InputTokens
		_, err = voter.Sample(t.Context(), sdk.Batch{Items: []sdk.Item{item}})
		must.Do(t, err)
		calls, spent = len(host.Calls())-calls, host.Spent(t).InputTokens-spent
		if off := float64(said.Likely.InputTokens)/float64(spent) - 1; calls != 2 || said.Requests != 2 || math.Abs(off) > .3 { // a text that repeats itself has longer tokens than the probe's
			t.Errorf("%d requests with %d tokens in, forecast %+v", calls, spent, said)
		}
	})
	t.Run("more choices than it has slots", func(t *testing.T) {
		host := &apitest.Host{}
		stage, err := OpenAI().Open(t.Context(), sdk.Setup{Samples: 7, Host: host}, fmt.Appendf(nil, `{"base_url": %q, "model": "tiny", "max_tokens": 4}`, address))
		must.Do(t, err)
		all, err := stage.(*openAIVoter).Sample(t.Context(), sdk.Batch{Items: []sdk.Item{{Prompts: []sdk.Prompt{plain}}}})
		if err != nil || len(all[0]) != 7 || len(host.Calls()) != 3 { // 7 is refused; 4 and 3 are not
			t.Errorf("%d samples by %d requests, error %v", len(all[0]), len(host.Calls()), err)
		}
	})
}

// checkSchema checks a cached answer against the schema, without the code that reads answers.
func checkSchema(t *testing.T, value []byte, allowed []string) {
	t.Helper()
	var cached struct{ Text string }
	var object map[string]string
	must.Do(t, json.Unmarshal(value, &cached))
	err := json.Unmarshal([]byte(cached.Text), &object)
	if label := object["label"]; err != nil || len(object) != 1 || label != "none of these" && !slices.Contains(allowed, label) {
		t.Errorf("%s does not fit the schema", cached.Text)
	}
	if a := support.ReadAnswer(cached.Text, sdk.Prompt{Labels: allowed, None: "none of these", Fields: []string{"label"}}, support.AnswerOptions{}); a.Reason != "" {
		t.Errorf("%s is read as %+v", cached.Text, a)
	}
}
