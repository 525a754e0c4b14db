package openai

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestForecast compares what is said of an item with what the server then counts, a
// JSON schema with it.
func TestForecast(t *testing.T) {
	labels := make([]string, 60)
	for i := range labels {
		labels[i] = fmt.Sprintf("a label with the number %d", i)
	}
	prompt := sdk.Prompt{Text: strings.Repeat("An example of a text that has a label. ", 40), Labels: labels}
	chat := sdk.Prompt{Messages: []sdk.Message{{Role: sdk.MessageUser, Text: "Which label?"}}, Labels: labels, Fields: []string{sdk.LabelProperty}}
	const unknown = "it is not known whether the model thinks before it answers, which would take more; racflow model probe finds out, or thinking in the profile block of its config says it"
	tests := map[string]struct {
		samples   int
		arguments string
		prompts   []sdk.Prompt
		server    modelserver.Options
		requests  int
		out       uint64
		unknown   string
	}{
		"one request":             {6, ``, []sdk.Prompt{prompt}, modelserver.Options{}, 1, 6 * 8, ""},
		"several":                 {6, `, "max_n": 4`, []sdk.Prompt{prompt}, modelserver.Options{}, 2, 6 * 8, ""},
		"a prompt for each":       {2, ``, []sdk.Prompt{prompt, chat}, modelserver.Options{}, 2, 8 + 12, ""},
		"a schema":                {2, ``, []sdk.Prompt{chat}, modelserver.Options{}, 1, 2 * 12, ""},
		"a schema, by force":      {2, `, "structured": "json_schema", "max_tokens": 9`, []sdk.Prompt{prompt}, modelserver.Options{}, 1, 18, ""},
		"no limit":                {1, `, "max_tokens": -1`, []sdk.Prompt{prompt}, modelserver.Options{}, 1, 8, "its answers have no limit; max_tokens in its config sets one"},
		"a limit in body":         {1, `, "body": "{\"max_tokens\": 5000}"`, []sdk.Prompt{prompt}, modelserver.Options{}, 1, 8, "body in its config may let a request take more"},
		"far too large":           {1, `, "max_tokens": 9000000000`, []sdk.Prompt{prompt}, modelserver.Options{}, 1, 8, "its max_tokens is beyond what any answer has"},
		"a server that gives one": {3, `, "model": "gives-one"`, []sdk.Prompt{prompt}, modelserver.Options{IgnoreN: true}, 3, 3 * 8, ""},
		"a model that thinks":     {2, `, "model": "thinks"`, []sdk.Prompt{prompt}, modelserver.Options{Thinks: modelserver.InAField}, 1, 2 * (8 + 101), ""},
		"a model nobody knows":    {1, `, "model": "unknown"`, []sdk.Prompt{prompt}, modelserver.Options{}, 1, 8, unknown},
		"no prompt":               {1, ``, nil, modelserver.Options{}, 0, 0, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := opened(t, test.samples, test.server, test.arguments)
			for model, known := range map[string]string{"tiny": `{"thinking": "no"}`, "gives-one": `{"thinking": "no", "n": "no"}`, "thinks": `{"thinking": "yes", "thoughts": 101}`} {
				must.Do(t, f.host.KeepProfile(t.Context(), f.Address(), model, json.RawMessage(known)))
			}
			item := sdk.Item{Prompts: test.prompts}
			said, err := f.Forecast(item)
			if err != nil || f.server.Calls() > 0 || len(f.host.Calls()) > 0 {
				t.Fatalf("error %v, %d calls", err, f.server.Calls())
			}
			if _, err := f.one(t, item); err != nil {
				t.Fatal(err)
			}
			took := f.host.Spent(t)
			if said.Requests != test.requests || f.server.Calls() != test.requests || said.Likely.OutputTokens != test.out || said.Unknown != test.unknown {
				t.Errorf("%+v, want %d requests, %d tokens out, unknown %q; %d calls", said, test.requests, test.out, test.unknown, f.server.Calls())
			}
			if in := said.Likely.InputTokens; in < took.InputTokens || in > 2*took.InputTokens+50*uint64(test.requests) {
				t.Errorf("%d tokens in were likely, and it took %d", in, took.InputTokens)
			}
			if test.unknown == "" && (said.Most.InputTokens < took.InputTokens || said.Most.OutputTokens < took.OutputTokens) {
				t.Errorf("at most %+v, and it took %+v", said.Most, took)
			}
			for _, call := range f.host.Calls() {
				if (call.Most != sdk.Usage{} && call.Most.Plausible()) != (test.unknown == "" || test.unknown == unknown) {
					t.Errorf("asked for %+v", call)
				}
			}
			if test.prompts == nil {
				return
			}
			again, err := f.Forecast(item) // all of it is in the response cache
			if err != nil || again != (sdk.Forecast{Cached: test.samples}) {
				t.Errorf("%+v is said of what is cached, error %v", again, err)
			}
		})
	}
	f := opened(t, 1, modelserver.Options{}, `, "endpoint": "completions"`)
	if _, err := f.Forecast(sdk.Item{Prompts: []sdk.Prompt{chat}}); sdk.CodeOf(err) != sdk.CodeInvalid {
		t.Errorf("a chat for the completions endpoint: %v", err)
	}
}
