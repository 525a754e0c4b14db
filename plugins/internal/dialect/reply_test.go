package dialect_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/sdk"
)

func TestRead(t *testing.T) {
	type choice = dialect.Choice
	tests := []struct {
		name, reply string
		form        dialect.Form
		want        []choice
	}{
		{"a text", `{"message": {"content": "yes"}, "finish_reason": "stop"}`, "", []choice{{Text: "yes", Finish: "stop"}}},
		{"a text that was continued", `{"text": " yes", "finish_reason": "length"}`, "", []choice{{Text: " yes", Finish: "length"}}},
		{"parts", `{"message": {"content": [{"type": "text", "text": "y"}, {"type": "text", "text": "es"}]}}`, "", []choice{{Text: "yes"}}},
		{"parts with thoughts", `{"message": {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "yes"}]}}`, "",
			[]choice{{Text: "yes", Thoughts: "hm"}}},
		{"parts with a plain thought", `{"message": {"content": [{"type": "reasoning", "text": "h"}, {"type": "thinking", "thinking": "m"}, {"type": "text", "text": "yes"}]}}`, "",
			[]choice{{Text: "yes", Thoughts: "hm"}}},
		{"a part that refuses", `{"message": {"content": [{"type": "refusal", "refusal": "no"}]}}`, "", []choice{{Refusal: "no"}}},
		{"nothing", `{"message": {"content": null}}`, "", []choice{{}}},
		{"another form", `{"message": {"content": 7}, "finish_reason": 7}`, "", []choice{{}}},
		{"thoughts in a field", `{"message": {"content": "yes", "reasoning_content": "hm"}}`, "", []choice{{Text: "yes", Thoughts: "hm"}}},
		{"thoughts in another", `{"message": {"content": "yes", "reasoning": "hm"}}`, "", []choice{{Text: "yes", Thoughts: "hm"}}},
		{"thoughts in both", `{"message": {"content": "yes", "reasoning": "hm", "reasoning_content": "hm"}}`, "", []choice{{Text: "yes", Thoughts: "hm"}}},
		{"a refusal", `{"message": {"content": null, "refusal": "no"}}`, "", []choice{{Refusal: "no"}}},
		{"a call of the tool", `{"message": {"content": null, "tool_calls": [{"type": "function", "function": {"name": "answer", "arguments": "{\"label\": \"a\"}"}}]}, "finish_reason": "tool_calls"}`,
			"", []choice{{Text: `{"label": "a"}`, Finish: "stop"}}},
		{"a call with words", `{"message": {"content": "I call.", "tool_calls": [{"function": {"arguments": "{}"}}, {"function": {"arguments": "[]"}}]}}`, dialect.FormTool, []choice{{Text: `{}`}}},
		{"words with a call that nobody asked for", `{"message": {"content": "yes", "tool_calls": [{"function": {"arguments": "{}"}}]}}`, "", []choice{{Text: `yes`}}},
		{"arguments that are no text", `{"message": {"tool_calls": [{"function": {"arguments": {"label": "a"}}}]}}`, "", []choice{{Text: `{"label": "a"}`}}},
		{"probabilities", `{"message": {"content": "yes"}, "logprobs": {"content": [{"token": "yes", "logprob": -0.5, "top_logprobs": [{"token": "no", "logprob": -1}]}]}}`, "",
			[]choice{{Text: "yes", Tokens: []dialect.Token{{Text: "yes", Log: -.5, Others: []dialect.Token{{Text: "no", Log: -1}}}}}}},
		{"probabilities of a text", `{"text": "yes", "logprobs": {"tokens": ["y", "es", "."], "token_logprobs": [null, -0.5], "top_logprobs": [null, {"o": -2}]}}`, "",
			[]choice{{Text: "yes", Tokens: []dialect.Token{{Text: "es", Log: -.5, Others: []dialect.Token{{Text: "o", Log: -2}}}}}}},
		{"two", `{"message": {"content": "a"}}, {"message": {"content": "b"}}`, "", []choice{{Text: "a"}, {Text: "b"}}},
		{"none", ``, "", nil},
	}
	for _, test := range tests {
		got, err := dialect.OpenAI{}.Read([]byte(`{"id": 1, "created": 1.5, "choices": [`+test.reply+`]}`), dialect.Request{Form: test.form})
		if diff := cmp.Diff(test.want, got.Choices); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got)\n%s", test.name, err, diff)
		}
	}
	got, err := dialect.OpenAI{}.Read([]byte(`{"model": "m-2", "usage": {"prompt_tokens": 5, "completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 7}}}`), dialect.Request{})
	if diff := cmp.Diff(dialect.Reply{Model: "m-2", Usage: sdk.Usage{InputTokens: 5, OutputTokens: 9}, ThoughtTokens: 7}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if _, err := (dialect.OpenAI{}).Read([]byte(`{"choices": 7}`), dialect.Request{}); err == nil {
		t.Error("choices that are none have no error")
	}
}

// FuzzRead: reading any reply ends without a panic, and counts stay plausible.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"choices": [{"message": {"content": [{"type": "thinking", "thinking": [{"text": "hm"}]}, {"text": "yes"}], "tool_calls": [{"function": {"arguments": "{}"}}]}, "logprobs": {"tokens": ["a"]}}]}`))
	f.Add([]byte(`{"choices": [{"text": "a", "finish_reason": null}], "usage": {"completion_tokens": -1, "completion_tokens_details": {"reasoning_tokens": 1e300}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := dialect.OpenAI{}.Read(text, dialect.Request{})
		if err != nil {
			return
		}
		for _, c := range got.Choices {
			_, _ = c.Written()
		}
		if got.ThoughtTokens > 1<<62 {
			t.Errorf("%d tokens of thoughts", got.ThoughtTokens)
		}
	})
}

func TestJoin(t *testing.T) {
	chunk := func(text string) string { return `data: {"model": "m", "choices": [` + text + `]}` + "\r\n\r\n" }
	begin := ": a comment\n\n" + chunk(`{"index": 0, "delta": {"role": "assistant", "content": ""}}`)
	stop := chunk(`{"index": 0, "delta": {}, "finish_reason": "stop"}`)
	end := "data: [DONE]\n\n"
	usage := `data: {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 9}}` + "\n\n"
	type choice = dialect.Choice
	tests := []struct {
		name, stream string
		want         []choice
		usage        sdk.Usage
		broken       bool
	}{
		{"a text", begin + chunk(`{"index": 0, "delta": {"content": "y"}}`) + chunk(`{"index": 0, "delta": {"content": "es"}}`) + stop + usage + end,
			[]choice{{Text: "yes", Finish: "stop"}}, sdk.Usage{InputTokens: 5, OutputTokens: 9}, false},
		{"without an end", begin + chunk(`{"index": 0, "delta": {"content": "yes"}}`) + stop, []choice{{Text: "yes", Finish: "stop"}}, sdk.Usage{}, false},
		{"without a reason", begin + chunk(`{"index": 0, "delta": {"content": "yes"}}`) + end, []choice{{Text: "yes"}}, sdk.Usage{}, false},
		{"of one line each", `data:{"choices":[{"text":"y"}]}` + "\n\n" + `data:{"choices":[{"text":"es","finish_reason":"stop"}]}`, []choice{{Text: "yes", Finish: "stop"}}, sdk.Usage{}, false},
		{"data in two lines", "event: message\ndata: {\"choices\":\ndata: [{\"text\":\"yes\"}]}\n\n" + end, []choice{{Text: "yes"}}, sdk.Usage{}, false},
		{"two choices, mixed", chunk(`{"index": 1, "delta": {"content": "b"}, "finish_reason": "stop"}`) + chunk(`{"index": 0, "delta": {"content": "a"}, "finish_reason": "length"}`) + end,
			[]choice{{Text: "b", Finish: "stop"}, {Text: "a", Finish: "length"}}, sdk.Usage{}, false},
		{"thoughts", chunk(`{"delta": {"reasoning_content": "h"}}`) + chunk(`{"delta": {"reasoning_content": "m"}}`) + chunk(`{"delta": {"content": "yes"}}`) + end,
			[]choice{{Text: "yes", Thoughts: "hm"}}, sdk.Usage{}, false},
		{"a call of the tool", chunk(`{"delta": {"tool_calls": [{"index": 0, "function": {"name": "answer", "arguments": ""}}]}}`) + chunk(`{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "{\"a\":"}}]}}`) +
			chunk(`{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]}}`) + chunk(`{"delta": {"tool_calls": [{"index": 1, "function": {"arguments": "{}"}}]}, "finish_reason": "tool_calls"}`) + end,
			[]choice{{Text: `{"a":1}`, Finish: "stop"}}, sdk.Usage{}, false},
		{"probabilities", chunk(`{"delta": {"content": "y"}, "logprobs": {"content": [{"token": "y", "logprob": -1, "top_logprobs": [{"token": "n", "logprob": -3}]}]}}`) + chunk(`{"delta": {"content": "es"}, "logprobs": {"content": [{"token": "es", "logprob": -2}]}}`) + end,
			[]choice{{Text: "yes", Tokens: []dialect.Token{{Text: "y", Log: -1, Others: []dialect.Token{{Text: "n", Log: -3}}}, {Text: "es", Log: -2}}}}, sdk.Usage{}, false},
		{"whole messages", `data: {"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}`, []choice{{Text: "yes", Finish: "stop"}}, sdk.Usage{}, false},
		{"broken off", begin + chunk(`{"index": 0, "delta": {"content": "y"}}`), nil, sdk.Usage{}, true},
		{"broken off in an event", begin + stop + `data: {"choices": [{"delta"`, nil, sdk.Usage{}, true},
		{"one of two broken off", chunk(`{"index": 1, "delta": {"content": "b"}, "finish_reason": "stop"}`) + chunk(`{"index": 0, "delta": {"content": "a"}}`), nil, sdk.Usage{}, true},
		{"nothing", ": wait\n\n", nil, sdk.Usage{}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			whole, err := dialect.OpenAI{}.Join([]byte(test.stream))
			if test.broken != (err != nil) {
				t.Fatalf("error %v", err)
			}
			if err != nil {
				return
			}
			got, err := dialect.OpenAI{}.Read(whole, dialect.Request{})
			if diff := cmp.Diff(test.want, got.Choices); err != nil || diff != "" || got.Usage != test.usage {
				t.Errorf("%v, usage %+v (-want +got)\n%s", err, got.Usage, diff)
			}
		})
	}
	whole, err := dialect.OpenAI{}.Join([]byte(begin + `data: {"error": {"message": "overloaded"}}` + "\n\n"))
	var failed struct{ Error struct{ Message string } }
	if err != nil || json.Unmarshal(whole, &failed) != nil || failed.Error.Message != "overloaded" {
		t.Errorf("an error in the stream: %s, %v", whole, err)
	}
}

// FuzzJoin: the result of any stream is valid JSON.
func FuzzJoin(f *testing.F) {
	f.Add([]byte("data: {\"choices\": [{\"delta\": {\"content\": \"y\"}}]}\n\ndata: [DONE]\n\n"))
	f.Add([]byte("data: {\ndata: }\n\nevent: x\n\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		if whole, err := (dialect.OpenAI{}).Join(stream); err == nil && !json.Valid(whole) {
			t.Errorf("%q gives %q", stream, whole)
		}
	})
}
