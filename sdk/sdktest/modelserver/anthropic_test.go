package modelserver

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// askMessage sends a request for a message, with further fields, in the version of the API.
func askMessage(t *testing.T, s *Server, key, fields string) (int, string) {
	t.Helper()
	body := `{"model": "m"` + fields + `, "max_tokens": 2000, "messages": [{"role": "user", "content": "p"}]}` // the first field of a name counts
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/messages", strings.NewReader(body))
	must.Do(t, err)
	req.Header.Set("anthropic-version", "2023-06-01")
	req.Header.Set("x-api-key", key)
	res, err := http.DefaultClient.Do(req)
	must.Do(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	must.Do(t, err)
	return res.StatusCode, string(text)
}

func TestMessagesAPI(t *testing.T) {
	const (
		thinking = `, "thinking": {"type": "enabled", "budget_tokens": 1024}`
		tools    = `, "tools": [{"name": "vote", "input_schema": ` + strictSchema + `}], "tool_choice": {"type": "tool", "name": "vote"}`
		output   = `, "output_config": {"format": {"type": "json_schema", "schema": ` + strictSchema + `}}`
	)
	tests := []struct {
		name    string
		options Options
		fields  string
		content string // JSON
		stop    string
	}{
		{"a text", Options{}, ``, `[{"type": "text", "text": "answer"}]`, "end_turn"},
		{"a schema", Options{}, output, `[{"type": "text", "text": "{\"label\": \"card_lost\"}"}]`, "end_turn"},
		{"a tool", Options{}, tools, `[{"type": "tool_use", "id": "toolu_1", "name": "vote", "input": {"label": "card_lost"}}]`, "tool_use"},
		{"thoughts that are asked for", Options{Thoughts: "hm"}, thinking, `[{"type": "thinking", "thinking": "hm", "signature": "signed"}, {"type": "text", "text": "answer"}]`, "end_turn"},
		{"thoughts of a model that always thinks", Options{Thoughts: "hm", Thinks: InAField}, ``, `[{"type": "thinking", "thinking": "hm", "signature": "signed"}, {"type": "text", "text": "answer"}]`, "end_turn"},
		{"a limit", Named("cuts-answers"), ``, `[{"type": "text", "text": "ans"}]`, "max_tokens"},
		{"a refusal", Named("refuses-to-answer"), ``, `[]`, "refusal"},
		{"a filter", Named("filters-answers"), ``, `[]`, "refusal"},
	}
	for _, test := range tests {
		s := Serve(t, test.options)
		status, text := askMessage(t, s, "", test.fields)
		var got struct {
			Content any
			Stop    string `json:"stop_reason"`
		}
		var want any
		if err := json.Unmarshal([]byte(text), &got); status != 200 || err != nil || json.Unmarshal([]byte(test.content), &want) != nil {
			t.Fatalf("%s: status %d: %s", test.name, status, text)
		}
		if diff := cmp.Diff(want, got.Content); diff != "" || got.Stop != test.stop {
			t.Errorf("%s: stop_reason %q (-want +got)\n%s", test.name, got.Stop, diff)
		}
	}
}

func TestMessagesRefused(t *testing.T) {
	for fields, want := range map[string]string{
		`, "n": 2`: "n: Extra inputs", `, "temperature": 1.5`: "temperature", `, "stop_sequences": ["\n"]`: "non-whitespace", `, "max_tokens": 0`: "max_tokens",
		`, "messages": []`: "first message", `, "messages": [{"role": "assistant", "content": "p"}]`: "first message",
		`, "messages": [{"role": "user", "content": "p"}, {"role": "system", "content": "s"}]`: "system", `, "messages": [{"role": "user", "content": ""}]`: "non-empty",
		`, "system": [{"type": "text", "text": ""}]`: "system", `, "thinking": {"type": "enabled", "budget_tokens": 9}`: "1024", `, "thinking": {"type": "enabled", "budget_tokens": 2000}`: "max_tokens",
		`, "thinking": {"type": "adaptive"}, "temperature": 0`: "temperature",
		`, "thinking": {"type": "adaptive"}, "tools": [{"name": "a", "input_schema": ` + strictSchema + `}], "tool_choice": {"type": "tool", "name": "a"}`:                                       "forces tool use",
		`, "output_config": {"format": {"type": "json_schema", "schema": {}}}`:                                                                                                                   "json_schema",
		`, "system": [` + strings.Repeat(`{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}},`, 4) + `{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}]`: "maximum of 4",
	} {
		status, text := askMessage(t, Serve(t, Options{}), "", fields)
		var got struct {
			Type  string
			Error struct{ Type, Message string }
		}
		must.Do(t, json.Unmarshal([]byte(text), &got))
		must.Equal(t, fields+": status and types", []any{400, "error", "invalid_request_error"}, []any{status, got.Type, got.Error.Type})
		if !strings.Contains(got.Error.Message, want) {
			t.Errorf("%s: %q has no %q", fields, got.Error.Message, want)
		}
	}
	s := Serve(t, Options{Key: "k", Faults: []Fault{{Kind: Status, Status: 529, Calls: []int{2}}}})
	for _, want := range []struct {
		key    string
		status int
		kind   string
	}{{"k", 200, "message"}, {"x", 401, "authentication_error"}, {"k", 529, "overloaded_error"}} {
		if status, text := askMessage(t, s, want.key, ""); status != want.status || !strings.Contains(text, `"`+want.kind+`"`) {
			t.Errorf("status %d: %s, want %+v", status, text, want)
		}
	}
	if status, _ := askMessage(t, Serve(t, Named("streams-only")), "", ""); status != 400 {
		t.Errorf("a whole reply of a server that streams only: status %d", status)
	}
}

// Tokens up to a mark are counted separately: the first request writes them to the cache, and the
// second reads them.
func TestMessagesUsage(t *testing.T) {
	s := Serve(t, Options{})
	system := `, "system": [{"type": "text", "text": "` + strings.Repeat("0123456789abcdef", 40) + `", "cache_control": {"type": "ephemeral"}}]`
	for i, want := range []map[string]bool{
		{"input_tokens": true, "cache_creation_input_tokens": true, "cache_read_input_tokens": false}, {"input_tokens": true, "cache_creation_input_tokens": false, "cache_read_input_tokens": true},
	} {
		_, text := askMessage(t, s, "", system)
		var got struct{ Usage map[string]float64 }
		must.Do(t, json.Unmarshal([]byte(text), &got))
		for field, counted := range want {
			if n := got.Usage[field]; counted != (n > 0) || n < 0 {
				t.Errorf("request %d: %s is %v", i, field, n)
			}
		}
	}
}

func TestMessageBreaksOff(t *testing.T) {
	if status, text := askMessage(t, Serve(t, Options{Faults: []Fault{{Kind: BrokeOff, First: 1}}}), "", ""); status != 529 {
		t.Errorf("a whole reply that breaks off: status %d: %s", status, text)
	}
}
