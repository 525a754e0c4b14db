package anthropic_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/plugins/internal/dialect/anthropic"
	"github.com/racflow/racflow/sdk"
)

func TestRead(t *testing.T) {
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
		got, err := anthropic.Dialect{}.Read([]byte(`{"id": "msg", "type": "message", `+test.reply+`}`), dialect.Request{Form: test.form})
		if diff := cmp.Diff(test.want, got.Choices); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got)\n%s", test.name, err, diff)
		}
	}
	if _, err := (anthropic.Dialect{}).Read([]byte(`{"content": 7}`), dialect.Request{}); err == nil {
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
		got, err := anthropic.Dialect{}.Read([]byte(`{"model": "m-2", "usage": `+usage+`}`), dialect.Request{})
		want.Model = "m-2"
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got)\n%s", usage, err, diff)
		}
	}
	got, err := anthropic.Dialect{}.Read([]byte(`{"usage": {"input_tokens": 5, "output_tokens": 9223372036854775807}}`), dialect.Request{})
	if err != nil || got.Usage.Plausible() || got.Usage.OutputTokens > math.MaxInt64 {
		t.Errorf("an absurd count: %+v, %v", got.Usage, err)
	}
}

func TestJoin(t *testing.T) {
	event := func(kind, rest string) string {
		return "event: " + kind + "\ndata: {\"type\": \"" + kind + "\"" + rest + "}\n\n"
	}
	begin := event("message_start", `, "message": {"id": "msg", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": null, "usage": {"input_tokens": 5, "cache_read_input_tokens": 20, "output_tokens": 1}}`) + event("ping", "")
	block := func(i string, block string, deltas ...string) string {
		all := event("content_block_start", `, "index": `+i+`, "content_block": `+block)
		for _, delta := range deltas {
			all += event("content_block_delta", `, "index": `+i+`, "delta": `+delta)
		}
		return all + event("content_block_stop", `, "index": `+i)
	}
	text := block("0", `{"type": "text", "text": ""}`, `{"type": "text_delta", "text": "y"}`, `{"type": "text_delta", "text": "es"}`)
	end := func(reason string) string {
		return event("message_delta", `, "delta": {"stop_reason": "`+reason+`", "stop_sequence": null}, "usage": {"output_tokens": 9, "input_tokens": null}`) + event("message_stop", "")
	}
	type choice = dialect.Choice
	tests := []struct {
		name, stream string
		want         choice
		broken       bool
	}{
		{"a text", begin + text + end("end_turn"), choice{Text: "yes", Finish: "stop"}, false},
		{"thoughts first", begin + block("0", `{"type": "thinking", "thinking": ""}`, `{"type": "thinking_delta", "thinking": "h"}`, `{"type": "thinking_delta", "thinking": "m"}`, `{"type": "signature_delta", "signature": "s"}`) +
			strings.ReplaceAll(text, `"index": 0`, `"index": 1`) + end("end_turn"), choice{Text: "yes", Thoughts: "hm", Finish: "stop"}, false},
		{"a call of the tool", begin + block("0", `{"type": "tool_use", "name": "answer", "input": {}}`, `{"type": "input_json_delta", "partial_json": ""}`, `{"type": "input_json_delta", "partial_json": "{\"a\":"}`, `{"type": "input_json_delta", "partial_json": "1}"}`) +
			end("tool_use"), choice{Text: `{"a":1}`, Finish: "stop"}, false},
		{"a call that a limit cut", begin + block("0", `{"type": "tool_use", "name": "answer", "input": {}}`, `{"type": "input_json_delta", "partial_json": "{\"a\":"}`) + end("max_tokens"), choice{Text: `{"a":`, Finish: "length"}, false},
		{"without an end", begin + text, choice{}, true},
		{"without a beginning", text + end("end_turn"), choice{}, true},
		{"a block without its beginning", begin + event("content_block_delta", `, "index": 3, "delta": {"type": "text_delta", "text": "y"}`) + end("end_turn"), choice{}, true},
		{"broken off in an event", begin + text + `data: {"type": "mess`, choice{}, true},
		{"nothing", ": wait\n\n", choice{}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			whole, err := anthropic.Dialect{}.Join([]byte(test.stream))
			if test.broken != (err != nil) {
				t.Fatalf("error %v", err)
			}
			if err != nil {
				return
			}
			got, err := anthropic.Dialect{}.Read(whole, dialect.Request{})
			want := dialect.Reply{Model: "m", Choices: []choice{test.want}, Usage: sdk.Usage{InputTokens: 25, CachedTokens: 20, OutputTokens: 9}}
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got)\n%s", err, diff)
			}
		})
	}
	whole, err := anthropic.Dialect{}.Join([]byte(begin + event("error", `, "error": {"type": "overloaded_error", "message": "Overloaded"}`)))
	var failed struct{ Error struct{ Message string } }
	if err != nil || json.Unmarshal(whole, &failed) != nil || failed.Error.Message != "Overloaded" {
		t.Errorf("an error in the stream: %s, %v", whole, err)
	}
}

// FuzzJoin: no stream makes what is not JSON.
func FuzzJoin(f *testing.F) {
	f.Add([]byte("data: {\"type\": \"message_start\", \"message\": {}}\n\ndata: {\"type\": \"message_stop\"}\n\n"))
	f.Add([]byte("data: {\"type\": \"message_start\", \"message\": {}}\n\ndata: {\"type\": \"content_block_start\", \"content_block\": {}}\n\n" +
		"data: {\"type\": \"content_block_delta\", \"delta\": {\"text\": \"y\"}}\n\ndata: {\"type\": \"message_delta\", \"delta\": {\"usage\": 7}}\n\ndata: {\"type\": \"message_stop\"}\n\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		if whole, err := (anthropic.Dialect{}).Join(stream); err == nil && !json.Valid(whole) {
			t.Errorf("%q gives %q", stream, whole)
		}
	})
}
