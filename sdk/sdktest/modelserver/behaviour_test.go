package modelserver

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// chat asks for a label, with further fields, and returns the first choice of the reply.
func chat(t *testing.T, s *Server, fields string) (status int, first map[string]any, usage map[string]any) {
	t.Helper()
	status, _, reply, err := post(t, t.Context(), s, "/chat/completions", `{"model": "m", "messages": [{"role": "user", "content": "p"}]`+fields+`}`)
	must.Do(t, err)
	if choices, ok := reply["choices"].([]any); ok && len(choices) > 0 {
		first = choices[0].(map[string]any)
		first, _ = first["message"].(map[string]any)
	}
	usage, _ = reply["usage"].(map[string]any)
	return status, first, usage
}

const (
	strictSchema = `{"type": "object", "properties": {"label": {"type": "string", "enum": ["card_lost", "pin"]}}, "required": ["label"], "additionalProperties": false}`
	asSchema     = `, "response_format": {"type": "json_schema", "json_schema": {"name": "a", "strict": true, "schema": ` + strictSchema + `}}`
	asTool       = `, "tools": [{"type": "function", "function": {"name": "vote", "parameters": ` + strictSchema + `}}]`
)

func TestUnsupported(t *testing.T) {
	for name, fields := range map[string]string{
		"refuses-temperature": `, "temperature": 0`, "refuses-stop": `, "stop": "\n"`, "refuses-n": `, "n": 2`, "has-four-slots": `, "n": 5`, "refuses-seed": `, "seed": 1`,
		"refuses-max-tokens": `, "max_tokens": 9`, "refuses-max-completion-tokens": `, "max_completion_tokens": 9`, "refuses-logprobs": `, "logprobs": true`,
		"refuses-schema": asSchema, "refuses-object": `, "response_format": {"type": "json_object"}`, "refuses-tools": asTool,
		"refuses-namelessly": `, "temperature": 1`,
	} {
		s := Serve(t, Named(name))
		if status, _, _ := chat(t, s, fields); status != 400 {
			t.Errorf("%s: status %d", name, status)
		}
		if status, first, _ := chat(t, s, `, "n": 1, "logprobs": false, "stream": false`); status != 200 || first["content"] != "answer" {
			t.Errorf("%s: without the field: status %d, %v", name, status, first)
		}
		if status, _, _ := chat(t, Serve(t, Options{}), fields); status != 200 {
			t.Errorf("%s: a server without it gives status %d", name, status)
		}
	}
	_, _, reply, _ := post(t, t.Context(), Serve(t, Named("refuses-temperature")), "/chat/completions", strings.Replace(hello, "{", `{"temperature": 0, `, 1))
	if e := reply["error"].(map[string]any); e["param"] != "temperature" || e["code"] != "unsupported_parameter" {
		t.Errorf("error %v", e)
	}
	_, _, reply, _ = post(t, t.Context(), Serve(t, Named("refuses-namelessly")), "/chat/completions", strings.Replace(hello, "{", `{"temperature": 0, `, 1))
	if e := reply["error"].(map[string]any); e["param"] != nil || !strings.Contains(e["message"].(string), "temperature") {
		t.Errorf("error %v", e)
	}
}

// TestForms: each behaviour that changes how an answer is written, alone and in combination.
func TestForms(t *testing.T) {
	tests := map[string]struct{ plain, schema string }{
		"answers-in-bold":       {"**pin**", `{"label": "pin"}`},
		"answers-in-quotes":     {`"pin".`, `{"label": "pin"}`},
		"answers-with-a-prefix": {"Label: pin", `{"label": "pin"}`},
		"answers-in-a-fence":    {"```\npin\n```", "```json\n{\"label\": \"pin\"}\n```"},
		"answers-in-other-case": {"Pin", `{"label": "pin"}`},
		"answers-with-another":  {"something else", `{"label": "pin"}`},
		"ignores-formats":       {"pin", "pin"},
		"thinks-in-tags":        {"<think>\n" + usualThoughts + "\n</think>\n\npin", "<think>\n" + usualThoughts + "\n</think>\n\n{\"label\": \"pin\"}"},
		"thinks-in-channels":    {"<|channel|>analysis<|message|>" + usualThoughts + "<|end|><|start|>assistant<|channel|>final<|message|>pin", ""},
		"answers-in-bold ignores-formats answers-with-a-prefix": {"Label: **pin**", "Label: **pin**"},
	}
	for names, want := range tests {
		o := Named(strings.Fields(names)...)
		o.Answer = func(Ask, int) string { return "pin" }
		s := Serve(t, o)
		if _, first, _ := chat(t, s, ""); first["content"] != want.plain {
			t.Errorf("%s: %q, want %q", names, first["content"], want.plain)
		}
		if _, first, _ := chat(t, s, asSchema); want.schema != "" && first["content"] != want.schema {
			t.Errorf("%s: with a schema %q, want %q", names, first["content"], want.schema)
		}
	}
}

func TestMessages(t *testing.T) {
	_, first, usage := chat(t, Serve(t, Named("thinks-in-a-field")), "")
	if first["content"] != "answer" || first["reasoning_content"] != usualThoughts || usage["completion_tokens_details"].(map[string]any)["reasoning_tokens"].(float64) < 90 {
		t.Errorf("thoughts in a field: %v, %v", first, usage)
	}
	_, first, short := chat(t, Serve(t, Named("thinks-silently")), `, "reasoning_effort": "low"`)
	if first["content"] != "answer" || first["reasoning_content"] != nil || short["completion_tokens"].(float64) > usage["completion_tokens"].(float64)/2 {
		t.Errorf("few silent thoughts: %v, %v", first, short)
	}
	if _, first, _ = chat(t, Serve(t, Named("thinks-silently")), `, "max_completion_tokens": 20`); first["content"] != "" {
		t.Errorf("thoughts that use the limit up: %v", first)
	}
	if _, first, _ = chat(t, Serve(t, Named("stops-in-thoughts")), `, "stop": ["\n"]`); first["content"] != "<think>" {
		t.Errorf("a stop text in thoughts: %v", first)
	}
	for fields, tool := range map[string]string{"": "answer", asTool: "vote"} {
		_, first, _ = chat(t, Serve(t, Named("answers-by-tool-call")), fields)
		called, _ := json.Marshal(first["tool_calls"])
		if first["content"] != nil || !strings.Contains(string(called), `"name":"`+tool+`"`) || !strings.Contains(string(called), `{\"label\": \"`) {
			t.Errorf("a tool call: %v", first)
		}
	}
	if _, first, _ = chat(t, Serve(t, Options{}), asTool); first["content"] != nil || first["tool_calls"] == nil {
		t.Errorf("a tool that is offered: %v", first)
	}
	if _, first, _ = chat(t, Serve(t, Named("answers-in-parts")), ""); len(first["content"].([]any)) != 1 {
		t.Errorf("parts: %v", first)
	}
	if _, _, usage = chat(t, Serve(t, Named("counts-nothing")), ""); usage != nil {
		t.Errorf("usage %v", usage)
	}
	if _, _, usage = chat(t, Serve(t, Named("counts-nonsense")), ""); usage["completion_tokens"] != float64(1<<63) {
		t.Errorf("usage %v", usage)
	}
}

// A stream has the same content as a whole reply. A server that streams only gives nothing else.
func TestStreams(t *testing.T) {
	for _, behaviour := range []string{"streams-only", "thinks-in-a-field", "answers-by-tool-call", "refuses-to-answer"} {
		s := Serve(t, Named("streams-only", behaviour).With("answers-in-bold"))
		if status, _, _ := chat(t, s, ""); status != 400 && behaviour != "refuses-to-answer" {
			t.Errorf("%s: not streamed: status %d", behaviour, status)
		}
		s = Serve(t, Named(behaviour))
		res, err := http.Post(s.URL+"/chat/completions", "application/json", strings.NewReader(strings.Replace(hello, "{", `{"n": 2, "stream": true, "stream_options": {"include_usage": true}, `, 1)))
		must.Do(t, err)
		defer res.Body.Close()
		texts, ends, tokens, done := map[float64]string{}, 0, 0., false
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			data, is := strings.CutPrefix(lines.Text(), "data: ")
			if data == "[DONE]" {
				done = true
			}
			var chunk struct {
				Choices []struct {
					Index  float64
					Finish *string `json:"finish_reason"`
					Delta  struct {
						Content, Refusal string
						Thoughts         string `json:"reasoning_content"`
						Calls            []struct {
							Function struct{ Arguments string }
						} `json:"tool_calls"`
					}
				}
				Usage struct {
					Completion float64 `json:"completion_tokens"`
				}
			}
			if !is || data == "[DONE]" {
				continue
			}
			must.Do(t, json.Unmarshal([]byte(data), &chunk))
			tokens += chunk.Usage.Completion
			for _, c := range chunk.Choices {
				texts[c.Index] += c.Delta.Thoughts + c.Delta.Content + c.Delta.Refusal
				for _, call := range c.Delta.Calls {
					texts[c.Index] += call.Function.Arguments
				}
				if c.Finish != nil {
					ends++
				}
			}
		}
		want := map[string]string{
			"streams-only": "answer", "thinks-in-a-field": usualThoughts + "answer", "answers-by-tool-call": `{"label": "answer"}`,
			"refuses-to-answer": "I can't help with that.",
		}[behaviour]
		must.Equal(t, behaviour+": texts, ends, done", []any{map[float64]string{0: want, 1: want}, 2, true}, []any{texts, ends, done})
		if tokens == 0 && behaviour != "refuses-to-answer" {
			t.Errorf("%s: no tokens are counted", behaviour)
		}
	}
}

func TestReadme(t *testing.T) {
	raw, err := os.ReadFile("README.md")
	if err != nil || string(raw) != Table() {
		t.Errorf("README.md is not current; `make generate` writes it (error %v)", err)
	}
}

func TestNames(t *testing.T) {
	var names []string
	for _, b := range Behaviours() {
		names = append(names, b.Name)
		if b.Server == "" || b.Racflow == "" {
			t.Errorf("%s: %q", b.Name, b.Server)
		}
	}
	slices.Sort(names)
	if len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("a name stands twice in %q", names)
	}
	if _, err := Find("thinks"); err == nil || !strings.Contains(err.Error(), "thinks-in-tags") {
		t.Errorf("error %v", err)
	}
	base := Options{Unsupported: make([]string, 0, 4)}
	if a, b := base.With("refuses-n"), base.With("refuses-stop"); a.Unsupported[0] != "n" || b.Unsupported[0] != "stop" {
		t.Errorf("%q, %q: they share their list", a.Unsupported, b.Unsupported)
	}
}

// Named faults in combination: each happens to its own requests.
func TestFaultsByName(t *testing.T) {
	s := Serve(t, Named("filters-prompts", "limits-prompts", "drops"))
	send := func(text string) (int, string, error) {
		res, err := http.Post(s.URL+"/chat/completions", "application/json", strings.NewReader(strings.Replace(hello, "hello", text, 1)))
		if err != nil {
			return 0, "", err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		return res.StatusCode, string(body), err
	}
	if _, _, err := send("hello"); err == nil {
		t.Error("the first request got a reply")
	}
	for text, want := range map[string]string{"something " + Harmful: "content_filter", Endless: "context_length_exceeded", "hello": `"choices"`} {
		status, body, err := send(text)
		if err != nil || !strings.Contains(body, want) || (status == 200) != (text == "hello") {
			t.Errorf("%q: status %d, %s, error %v", text, status, body, err)
		}
	}
	s = Serve(t, Named("resets-at-first"))
	for range 5 {
		if _, _, err := send("hello"); err == nil || !strings.Contains(err.Error(), "reset") && !strings.Contains(err.Error(), "EOF") {
			t.Errorf("error %v", err)
		}
	}
	if status, _, err := send("hello"); status != 200 {
		t.Errorf("status %d, error %v", status, err)
	}
}
