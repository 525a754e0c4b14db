package profile

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/plugins/internal/dialect"
)

// full has every field that a stage may send.
func full() dialect.Request {
	return dialect.Request{
		Model: "m", N: 5, Temperature: new(0.7), TopP: new(0.9), Seed: new(3), MaxTokens: 32, Stop: []string{"\n"},
		Logprobs: true, Schema: json.RawMessage(`{}`), Grammar: "g", Effort: "low",
	}
}

func TestApply(t *testing.T) {
	tests := map[string]struct {
		profile Profile
		before  func(*dialect.Request)
		change  func(*dialect.Request) // of full
	}{
		"nothing is known": {change: func(*dialect.Request) {}},
		"everything is taken": {
			profile: Profile{Temperature: Yes, TopP: Yes, Stop: Yes, N: Yes, Seed: Yes, Logprobs: Yes, Limit: LimitTokens, Structured: StructureSchema, Streaming: No, Thinks: No, Effort: Yes},
			change:  func(r *dialect.Request) { r.MaxTokensField = "max_tokens" },
		},
		"everything is refused": {
			profile: Profile{Temperature: No, Stop: No, N: No, Seed: No, Logprobs: No, Effort: No, Limit: LimitNone, Structured: StructureText},
			change: func(r *dialect.Request) {
				*r = dialect.Request{Model: "m", N: 1, Schema: r.Schema, Form: dialect.FormText}
			},
		},
		"top_p alone is taken": {profile: Profile{Temperature: No, TopP: Yes}, change: func(r *dialect.Request) { r.Temperature = nil }},
		"it thinks": {
			profile: Profile{Thinks: Yes, Limit: LimitCompletion},
			change: func(r *dialect.Request) {
				r.MaxTokens, r.MaxTokensField, r.Stop = 32+LeastRoom, "max_completion_tokens", nil
			},
		},
		"it thinks in so much room": {profile: Profile{Thinks: Yes, Room: 100}, change: func(r *dialect.Request) { r.MaxTokens, r.Stop = 132, nil }},
		"it thinks without a limit": {
			profile: Profile{Thinks: Yes},
			before:  func(r *dialect.Request) { r.MaxTokens = 0 },
			change:  func(r *dialect.Request) { r.Stop = nil },
		},
		"tools":     {profile: Profile{Structured: StructureTool}, change: func(r *dialect.Request) { r.Form = dialect.FormTool }},
		"streaming": {profile: Profile{Streaming: Yes}, change: func(r *dialect.Request) { r.Stream = true }},
		"what the file says stays": {
			profile: Profile{Limit: LimitNone, Structured: StructureText},
			before: func(r *dialect.Request) {
				r.MaxTokensField, r.Form, r.Stream, r.Grammar = "max_tokens", dialect.FormObject, true, ""
			},
			change: func(*dialect.Request) {},
		},
		"few answers": {profile: Profile{N: Yes, Choices: 4}, change: func(r *dialect.Request) { r.N = 4 }},
		"one answer":  {profile: Profile{N: No}, before: func(r *dialect.Request) { r.N = 0 }, change: func(*dialect.Request) {}},
	}
	for name, test := range tests {
		before := full()
		if test.before != nil {
			test.before(&before)
		}
		want := before
		test.change(&want)
		if diff := cmp.Diff(want, test.profile.Apply(before)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
