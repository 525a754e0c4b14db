package profile

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/dialect"
)

// Refusals of real services, and what follows from them.
func TestRefused(t *testing.T) {
	nothing := func(*Profile) {}
	two := func(r *dialect.Request) { r.N = 2 }
	completion := func(r *dialect.Request) { r.MaxTokensField = "max_completion_tokens" }
	tests := []struct {
		param, message string
		sent           func(*dialect.Request) // changes full
		change         func(*Profile)
	}{
		{"temperature", "Unsupported value: 'temperature' does not support 0.7 with this model. Only the default (1) value is supported.", nil, func(p *Profile) { p.Temperature = No }},
		{"max_tokens", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", nil, func(p *Profile) { p.Limit = LimitCompletion }},
		{"", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", nil, func(p *Profile) { p.Limit = LimitCompletion }},
		{"", "unknown field max_completion_tokens", completion, func(p *Profile) { p.Limit = LimitNone }},
		{"stop", "Unsupported parameter: 'stop' is not supported with this model.", nil, func(p *Profile) { p.Stop = No }},
		{"response_format.json_schema", "Invalid parameter", nil, func(p *Profile) { p.Structured = StructureObject }},
		{"tools[0].function", "Invalid parameter", func(r *dialect.Request) { r.Form = dialect.FormTool }, func(p *Profile) { p.Structured = StructureText }},
		{"", "this model takes no temperature, top_p, max_tokens, stop, logprobs and n", nil, func(p *Profile) {
			p.Temperature, p.TopP, p.Stop, p.Logprobs, p.N, p.Limit = No, No, No, No, No, LimitCompletion
		}},
		{"", `[{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]`, nil, func(p *Profile) { p.Seed = No }},
		{"", "reasoning_effort is not supported", nil, func(p *Profile) { p.Effort = No }},
		{"", "Only one completion choice is allowed: n must be 1", two, func(p *Profile) { p.N = No }},
		{"", "n: 2 is greater than 1", two, func(p *Profile) { p.N = No }},
		{"", "n must be at most 4", nil, func(p *Profile) { p.Choices = 4 }}, // of 5 that were asked for
		{"", "n_cmpl cannot be greater than the number of slots, please increase -np", nil, func(p *Profile) { p.Choices = 4 }},
		{"", "n_cmpl cannot be greater than the number of slots, please increase -np", two, func(p *Profile) { p.N = No }},
		{"", "temperature: must be between 0 and 1", nil, nothing},
		{"", "max_tokens is too large: 32. This model supports at most 16 completion tokens.", nil, nothing},
		{"", `This model only supports streaming: set "stream" to true`, nil, func(p *Profile) { p.Streaming = Yes }},
		{"", "stream must be true", func(r *dialect.Request) { r.Stream = true }, nothing},
		{"", "the upstream only allows so much", nil, nothing},
		{"", "Could not finish the message because max_tokens or model output limit was reached.", nil, func(p *Profile) { p.Thinks, p.Room = Yes, LeastRoom }},
		{"", "seed is not supported", func(r *dialect.Request) { r.Seed = nil }, nothing}, // it was not sent
		{"", `the text holds "\n", which is not supported`, nil, nothing},
		{"messages", "temperature is high today", nil, nothing}, // the parameter says what it is about
		{"", "This model's maximum context length is 4096 tokens", nil, nothing},
		{"", "", nil, nothing},
	}
	for _, test := range tests {
		sent := full()
		sent.Schema = json.RawMessage(`{}`)
		if test.sent != nil {
			test.sent(&sent)
		}
		var want Profile
		test.change(&want)
		got, learned := Profile{}.refused(sent, api.Refusal{Param: test.param, Message: test.message})
		if diff := cmp.Diff(want, got); diff != "" || learned == reflect.DeepEqual(want, Profile{}) {
			t.Errorf("%s %q: learned %t (-want +got):\n%s", test.param, test.message, learned, diff)
		}
	}
}

// A late refusal does not undo what was learned meanwhile.
func TestLateRefusal(t *testing.T) {
	sent := full()
	sent.Schema = json.RawMessage(`{}`)
	known := Profile{Structured: StructureTool, Limit: LimitNone, Choices: 2}
	for param, message := range map[string]string{"response_format": "not supported", "max_tokens": "not supported", "n": "too large"} {
		if got, learned := known.refused(sent, api.Refusal{Param: param, Message: message}); learned || !reflect.DeepEqual(got, known) {
			t.Errorf("%s: %+v, learned %t", param, got, learned)
		}
	}
}

// If a model cannot write as many tokens as its limit with thoughts allows, the room for thoughts is reduced.
func TestTooMuchRoom(t *testing.T) {
	p := Profile{Thinks: Yes, Limit: LimitCompletion, Room: 8000}
	sent := p.Apply(dialect.Request{MaxTokens: 32})
	got, learned := p.refused(sent, api.Refusal{Param: "max_completion_tokens", Message: "max_completion_tokens is too large: 8032. This model supports at most 4096."})
	if !learned || got.Room != 4000 || got.Limit != LimitCompletion {
		t.Errorf("%+v", got)
	}
}
