package dialect_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/sdk"
)

func say(role, text string) sdk.Message { return sdk.Message{Role: role, Text: text} }

func anthropicNumber(x float64) *float64 { return &x }

// Each request, and the body that is sent for it.
var bodies = map[string]struct {
	request dialect.Request
	want    string
}{
	"a question": {
		dialect.Request{Model: "m", Messages: []sdk.Message{say("user", "q")}, MaxTokens: 9, N: 3, Temperature: anthropicNumber(0), TopP: anthropicNumber(.5), MaxTokensField: "max_completion_tokens", Seed: new(int), Logprobs: true},
		`{"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [{"type": "text", "text": "q"}]}], "temperature": 0, "top_p": 0.5}`,
	},
	"no limit": {
		dialect.Request{Model: "m", Messages: []sdk.Message{say("user", "q")}},
		`{"model": "m", "max_tokens": 4096, "messages": [{"role": "user", "content": [{"type": "text", "text": "q"}]}]}`,
	},
	"stop texts that are not white space": {
		dialect.Request{Messages: []sdk.Message{say("user", "q")}, MaxTokens: 9, Stop: []string{"\n", "END", " "}},
		`{"model": "", "max_tokens": 9, "messages": [{"role": "user", "content": [{"type": "text", "text": "q"}]}], "stop_sequences": ["END"]}`,
	},
	"system messages, and roles in turns": {
		dialect.Request{MaxTokens: 9, Messages: []sdk.Message{
			say("system", "s"), say("user", "a"), say("user", ""), say("user", "b"), say("assistant", ""), say("user", "c"), say("assistant", "x"), say("system", "t"), say("user", "d"),
		}},
		`{"model": "", "max_tokens": 9, "system": [{"type": "text", "text": "s"}, {"type": "text", "text": "t"}], "messages": [
			{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, {"type": "text", "text": "c"}]},
			{"role": "assistant", "content": [{"type": "text", "text": "x"}]}, {"role": "user", "content": [{"type": "text", "text": "d"}]}]}`,
	},
	"nothing but system messages": {
		dialect.Request{MaxTokens: 9, Messages: []sdk.Message{say("system", "s"), say("system", "q")}},
		`{"model": "", "max_tokens": 9, "system": [{"type": "text", "text": "s"}], "messages": [{"role": "user", "content": [{"type": "text", "text": "q"}]}]}`,
	},
	"marks, the last four": {
		dialect.Request{MaxTokens: 9, CacheMarks: true, Messages: []sdk.Message{
			{Role: "system", Text: "s", Shared: true}, {Role: "user", Text: "a", Shared: true}, {Role: "assistant", Text: "b", Shared: true},
			{Role: "user", Text: "", Shared: true}, {Role: "user", Text: "c", Shared: true}, {Role: "assistant", Text: "d", Shared: true}, {Role: "user", Text: "e"},
		}},
		`{"model": "", "max_tokens": 9, "system": [{"type": "text", "text": "s"}], "messages": [
			{"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]},
			{"role": "assistant", "content": [{"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}}]},
			{"role": "user", "content": [{"type": "text", "text": "c", "cache_control": {"type": "ephemeral"}}]},
			{"role": "assistant", "content": [{"type": "text", "text": "d", "cache_control": {"type": "ephemeral"}}]},
			{"role": "user", "content": [{"type": "text", "text": "e"}]}]}`,
	},
	"a schema": {
		dialect.Request{MaxTokens: 9, Messages: []sdk.Message{say("user", "q")}, Schema: json.RawMessage(`{"type":"object"}`)},
		`{"model": "", "max_tokens": 9, "messages": [{"role": "user", "content": [{"type": "text", "text": "q"}]}], "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}}`,
	},
	"a tool that has to be called": {
		dialect.Request{MaxTokens: 9, Messages: []sdk.Message{say("user", "q")}, Schema: json.RawMessage(`{"type":"object"}`), Form: dialect.FormTool},
		`{"model": "", "max_tokens": 9, "messages": [{"role": "user", "content": [{"type": "text", "text": "q"}]}],
			"tools": [{"name": "answer", "description": "Takes the answer.", "input_schema": {"type": "object"}}],
			"tool_choice": {"type": "tool", "name": "answer", "disable_parallel_tool_use": true}}`,
	},
	"a tool for a model that thinks": {
		dialect.Request{MaxTokens: 9, Messages: []sdk.Message{say("user", "q")}, Schema: json.RawMessage(`{"type":"object"}`), Form: dialect.FormTool, Effort: "2000", Temperature: anthropicNumber(.7), TopP: anthropicNumber(.9)},
		`{"model": "", "max_tokens": 2009, "messages": [{"role": "user", "content": [{"type": "text", "text": "q"}]}], "thinking": {"type": "enabled", "budget_tokens": 2000},
			"tools": [{"name": "answer", "description": "Takes the answer.", "input_schema": {"type": "object"}}],
			"tool_choice": {"type": "auto", "disable_parallel_tool_use": true}}`,
	},
	"a schema in words": {
		dialect.Request{MaxTokens: 9, Messages: []sdk.Message{say("user", "q")}, Schema: json.RawMessage(`{}`), Form: dialect.FormObject},
		`{"model": "", "max_tokens": 9, "messages": [{"role": "user", "content": [{"type": "text", "text": "q\n\nAnswer with a JSON object that fits this JSON schema, and with nothing else:\n{}"}]}]}`,
	},
	"an effort, and a schema": {
		dialect.Request{MaxTokens: 4105, Messages: []sdk.Message{say("user", "q")}, Effort: "low", Temperature: anthropicNumber(.7), Schema: json.RawMessage(`{}`)},
		`{"model": "", "max_tokens": 4105, "messages": [{"role": "user", "content": [{"type": "text", "text": "q"}]}], "thinking": {"type": "adaptive"}, "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {}}}}`,
	},
	"an effort, and no limit": {
		dialect.Request{Messages: []sdk.Message{say("user", "q")}, Effort: "max"},
		`{"model": "", "max_tokens": 16384, "messages": [{"role": "user", "content": [{"type": "text", "text": "q"}]}], "thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}}`,
	},
	"a budget that is too small": {
		dialect.Request{MaxTokens: 9, Messages: []sdk.Message{say("user", "q")}, Effort: "5"},
		`{"model": "", "max_tokens": 1033, "messages": [{"role": "user", "content": [{"type": "text", "text": "q"}]}], "thinking": {"type": "enabled", "budget_tokens": 1024}}`,
	},
	"a budget that the limit has room for": {
		dialect.Request{MaxTokens: 4105, Messages: []sdk.Message{say("user", "q")}, Effort: "2000"},
		`{"model": "", "max_tokens": 4105, "messages": [{"role": "user", "content": [{"type": "text", "text": "q"}]}], "thinking": {"type": "enabled", "budget_tokens": 2000}}`,
	},
	"no thoughts": {
		dialect.Request{MaxTokens: 9, Messages: []sdk.Message{say("user", "q")}, Effort: "none", Temperature: anthropicNumber(1)},
		`{"model": "", "max_tokens": 9, "messages": [{"role": "user", "content": [{"type": "text", "text": "q"}]}], "thinking": {"type": "disabled"}, "temperature": 1}`,
	},
	"further fields": {
		dialect.Request{MaxTokens: 9, Messages: []sdk.Message{say("user", "q")}, Extra: map[string]any{"top_k": 5, "max_tokens": 7}},
		`{"model": "", "max_tokens": 7, "messages": [{"role": "user", "content": [{"type": "text", "text": "q"}]}], "top_k": 5}`,
	},
}

func TestAnthropicBody(t *testing.T) {
	for name, test := range bodies {
		body, err := dialect.Anthropic{}.Body(test.request)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text, err := json.Marshal(body)
		var got, want any
		if err != nil || json.Unmarshal(text, &got) != nil || json.Unmarshal([]byte(test.want), &want) != nil {
			t.Fatalf("%s: %s, %v", name, text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestImpossible(t *testing.T) {
	for want, r := range map[string]dialect.Request{
		`write endpoint = "chat"`: {Prompt: "to be"},
		`write "json_schema"`:     {Messages: []sdk.Message{say("user", "q")}, Choice: []string{"a"}},
	} {
		if _, err := (dialect.Anthropic{}).Body(r); sdk.CodeOf(err) != sdk.CodeInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestHeader(t *testing.T) {
	d := dialect.Anthropic{}
	if h := d.Header("k"); h.Get("x-api-key") != "k" || h.Get("anthropic-version") != "2023-06-01" || d.Path(dialect.Request{}) != "/messages" {
		t.Errorf("headers %v, path %s", h, d.Path(dialect.Request{}))
	}
	if h := d.Header(""); len(h) != 1 {
		t.Errorf("without a key: %v", h)
	}
}

func TestAnthropicRead(t *testing.T) {
	type choice = dialect.Choice
	tests := []struct {
		name, reply string
		form        dialect.Form
		want        []choice
	}{
		{"a text", `"content": [{"type": "text", "text": "yes"}], "stop_reason": "end_turn"`, "", []choice{{Text: "yes", Finish: "stop"}}},
		{"two texts", `"content": [{"type": "text", "text": "y"}, {"type": "text", "text": "es"}], "stop_reason": "stop_sequence", "stop_sequence": "END"`, "", []choice{{Text: "yes", Finish: "stop"}}},
		{"thoughts", `"content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "yes"}], "stop_reason": "end_turn"`, "",
			[]choice{{Text: "yes", Thoughts: "hm", Finish: "stop"}}},
		{"a limit", `"content": [{"type": "text", "text": "ye"}], "stop_reason": "max_tokens"`, "", []choice{{Text: "ye", Finish: "length"}}},
		{"the model's own limit", `"content": [{"type": "text", "text": "ye"}], "stop_reason": "model_context_window_exceeded"`, "", []choice{{Text: "ye", Finish: "length"}}},
		{"a pause", `"content": [{"type": "text", "text": "ye"}], "stop_reason": "pause_turn"`, "", []choice{{Text: "ye", Finish: "length"}}},
		{"a reason that is new", `"content": [{"type": "text", "text": "yes"}], "stop_reason": "bored"`, "", []choice{{Text: "yes", Finish: "bored"}}},
		{"a call of the tool", `"content": [{"type": "tool_use", "name": "answer", "input": {"label": "a"}}], "stop_reason": "tool_use"`, "", []choice{{Text: `{"label": "a"}`, Finish: "stop"}}},
		{"a call with words", `"content": [{"type": "text", "text": "I call."}, {"type": "tool_use", "input": {}}, {"type": "tool_use", "input": []}], "stop_reason": "tool_use"`, dialect.FormTool, []choice{{Text: `{}`, Finish: "stop"}}},
		{"words with a call that nobody asked for", `"content": [{"type": "text", "text": "yes"}, {"type": "tool_use", "input": {}}]`, "", []choice{{Text: "yes"}}},
		{"words where a tool was offered", `"content": [{"type": "text", "text": "{\"label\": \"a\"}"}], "stop_reason": "end_turn"`, dialect.FormTool, []choice{{Text: `{"label": "a"}`, Finish: "stop"}}},
		{"a refusal", `"content": [], "stop_reason": "refusal", "stop_details": {"type": "refusal", "category": "bio", "explanation": "It is dangerous."}`, "", []choice{{Finish: "stop", Refusal: "It is dangerous."}}},
		{"a refusal by category", `"content": [], "stop_reason": "refusal", "stop_details": {"category": "bio", "explanation": null}`, "", []choice{{Finish: "stop", Refusal: "bio"}}},
		{"a refusal without a word", `"content": [], "stop_reason": "refusal", "stop_details": null`, "", []choice{{Finish: "stop", Refusal: "it gives no reason"}}},
		{"nothing", `"content": [], "stop_reason": "end_turn"`, "", []choice{{Finish: "stop"}}},
		{"another form", `"choices": []`, "", nil},
	}
	for _, test := range tests {
		got, err := dialect.Anthropic{}.Read([]byte(`{"id": "msg", "type": "message", `+test.reply+`}`), dialect.Request{Form: test.form})
		if diff := cmp.Diff(test.want, got.Choices); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got)\n%s", test.name, err, diff)
		}
	}
	if _, err := (dialect.Anthropic{}).Read([]byte(`{"content": 7}`), dialect.Request{}); err == nil {
		t.Error("content that is none has no error")
	}
}

// The service counts cached tokens apart, and sdk.Usage does not.
func TestUsage(t *testing.T) {
	for usage, want := range map[string]dialect.Reply{
		`{"input_tokens": 5, "output_tokens": 9}`: {Usage: sdk.Usage{InputTokens: 5, OutputTokens: 9}},
		`{"input_tokens": 5, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 2000, "output_tokens": 90, "output_tokens_details": {"thinking_tokens": 70}}`: {
			Usage: sdk.Usage{InputTokens: 2105, CachedTokens: 2000, OutputTokens: 90}, ThoughtTokens: 70},
		`{"input_tokens": 5, "cache_creation_input_tokens": null, "cache_read_input_tokens": null, "output_tokens": 9}`: {Usage: sdk.Usage{InputTokens: 5, OutputTokens: 9}},
		`null`: {},
	} {
		got, err := dialect.Anthropic{}.Read([]byte(`{"model": "m-2", "usage": `+usage+`}`), dialect.Request{})
		want.Model = "m-2"
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got)\n%s", usage, err, diff)
		}
	}
	got, err := dialect.Anthropic{}.Read([]byte(`{"usage": {"input_tokens": 5, "output_tokens": 9223372036854775807}}`), dialect.Request{})
	if err != nil || got.Usage.Plausible() || got.Usage.OutputTokens > math.MaxInt64 {
		t.Errorf("an absurd count: %+v, %v", got.Usage, err)
	}
}
