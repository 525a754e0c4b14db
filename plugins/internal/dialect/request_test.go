package dialect_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/sdk"
)

func number(v float64) *float64 { return &v }

func TestBody(t *testing.T) {
	zero := 0
	chat := []sdk.Message{{Role: sdk.MessageSystem, Text: "s", Shared: true}, {Role: sdk.MessageUser}, {Role: sdk.MessageUser, Text: "q"}}
	messages := `"messages":[{"role":"system","content":"s"},{"role":"user","content":""},{"role":"user","content":"q"}]`
	schema := json.RawMessage(`{"type":"object","properties":{"z":{},"a":{}}}`)
	in := `Answer with a JSON object that fits this JSON schema, and with nothing else:\n{\"type\":\"object\",\"properties\":{\"z\":{},\"a\":{}}}`
	question := []sdk.Message{{Role: sdk.MessageUser, Text: "q"}}
	tests := []struct {
		name string
		r    dialect.Request
		want string
	}{
		{"a chat", dialect.Request{Messages: chat}, `"model":"m",` + messages},
		{"a text", dialect.Request{Prompt: "p", MaxTokens: 7, Logprobs: true}, `"model":"m","prompt":"p","max_tokens":7,"logprobs":5`},
		{"zeros are sent", dialect.Request{Messages: chat, Temperature: number(0), TopP: number(0), Seed: &zero},
			`"model":"m",` + messages + `,"temperature":0,"top_p":0,"seed":0`},
		{"numbers are not rounded", dialect.Request{Prompt: "p", Temperature: number(.7), TopP: number(.1)}, `"model":"m","prompt":"p","temperature":0.7,"top_p":0.1`},
		{"all of a chat", dialect.Request{Messages: question, N: 3, Temperature: number(1.5), MaxTokens: 7, MaxTokensField: dialect.MaxCompletionTokens, Stop: []string{"\n"},
			Logprobs: true, Choice: []string{"a"}, Effort: "low", PromptCacheKey: "k", Stream: true, Extra: map[string]any{"user": "me", "temperature": json.RawMessage("2")}},
			`"logprobs":true,"max_completion_tokens":7,"messages":[{"role":"user","content":"q"}],"model":"m","n":3,"prompt_cache_key":"k","reasoning_effort":"low",` +
				`"stop":["\n"],"stream":true,"stream_options":{"include_usage":true},"structured_outputs":{"choice":["a"]},"temperature":2,"top_logprobs":20,"user":"me"`},
		{"marks", dialect.Request{Messages: chat, CacheMarks: true},
			`"model":"m","messages":[{"role":"system","content":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}]},{"role":"user","content":""},{"role":"user","content":"q"}]`},
		{"a schema", dialect.Request{Messages: question, Schema: schema, Grammar: "root ::= x"},
			`"model":"m","messages":[{"role":"user","content":"q"}],"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":` + string(schema) + `,"strict":true}}`},
		{"a schema for a text", dialect.Request{Prompt: "p", Schema: schema, Grammar: "root ::= x"},
			`"model":"m","prompt":"p","response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":` + string(schema) + `,"strict":true}},"grammar":"root ::= x"`},
		{"an object", dialect.Request{Messages: question, Schema: schema, Form: dialect.FormObject},
			`"model":"m","messages":[{"role":"user","content":"q\n\n` + in + `"}],"response_format":{"type":"json_object"}`},
		{"a tool", dialect.Request{Messages: question, Schema: schema, Form: dialect.FormTool},
			`"model":"m","messages":[{"role":"user","content":"q"}],"tools":[{"function":{"name":"answer","description":"Takes the answer.","strict":true,"parameters":` + string(schema) +
				`},"type":"function"}],"tool_choice":{"type":"function","function":{"name":"answer"}}`},
		{"in words", dialect.Request{Messages: question, Schema: schema, Form: dialect.FormText}, `"model":"m","messages":[{"role":"user","content":"q\n\n` + in + `"}]`},
		{"in words, after the model's turn", dialect.Request{Messages: []sdk.Message{{Role: sdk.MessageAssistant, Text: "x"}}, Schema: schema, Form: dialect.FormText},
			`"model":"m","messages":[{"role":"assistant","content":"x"},{"role":"user","content":"` + in + `"}]`},
		{"a text in words", dialect.Request{Prompt: "p", Schema: schema, Form: dialect.FormText, Grammar: "root ::= x"}, `"model":"m","prompt":"` + in + `\n\np"`},
	}
	for _, test := range tests {
		before := fmt.Sprintf("%+v", test.r)
		test.r.Model = "m"
		body, err := dialect.OpenAI{}.Body(test.r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(body)
		if diff := cmp.Diff("{"+test.want+"}", string(got)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got)\n%s", test.name, err, diff)
		}
		if test.r.Model = ""; fmt.Sprintf("%+v", test.r) != before {
			t.Errorf("%s: the request was changed", test.name)
		}
	}
	var many []sdk.Message
	for i := range 6 {
		many = append(many, sdk.Message{Role: sdk.MessageUser, Text: fmt.Sprint(i), Shared: true})
	}
	body, _ := dialect.OpenAI{}.Body(dialect.Request{Messages: many, CacheMarks: true})
	if text, err := json.Marshal(body); err != nil || strings.Count(string(text), "ephemeral") != 4 || strings.Index(string(text), "ephemeral") < strings.Index(string(text), `"2"`) {
		t.Errorf("the last four are not marked: %s", text)
	}
}

func TestWhereAndHow(t *testing.T) {
	chat, text := dialect.Request{Model: "my gpt", Messages: []sdk.Message{{}}}, dialect.Request{Model: "my gpt", Prompt: "p"}
	azure := dialect.OpenAI{APIVersion: "2024-10-21"}
	for got, want := range map[string]string{
		dialect.OpenAI{}.Path(chat): "/chat/completions",
		dialect.OpenAI{}.Path(text): "/completions",
		azure.Path(chat):            "/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21",
		azure.Path(text):            "/openai/deployments/my%20gpt/completions?api-version=2024-10-21",
	} {
		if got != want {
			t.Errorf("path %s, want %s", got, want)
		}
	}
	for _, test := range []struct {
		dialect   dialect.OpenAI
		key, name string
		want      http.Header
	}{
		{dialect.OpenAI{}, "k", "a bearer", http.Header{"Authorization": {"Bearer k"}}},
		{dialect.OpenAI{}, "", "none", nil},
		{azure, "k", "Azure", http.Header{"Api-Key": {"k"}}},
	} {
		if diff := cmp.Diff(test.want, test.dialect.Header(test.key)); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

// TestKey changes every field of a request. All change the key, except fields that do not change an answer.
func TestKey(t *testing.T) {
	seven := 7
	values := map[string]any{
		"Model": "x", "Messages": []sdk.Message{{Role: sdk.MessageUser, Text: "x"}}, "Prompt": "x", "N": 7, "Temperature": number(7), "TopP": number(.7), "Seed": &seven,
		"MaxTokens": 7, "Stop": []string{"x"}, "Logprobs": true, "Schema": json.RawMessage(`{}`), "Form": dialect.FormTool, "Choice": []string{"x"}, "Grammar": "x",
		"Effort": "x", "MaxTokensField": "x", "Stream": true, "CacheMarks": true, "PromptCacheKey": "x", "Extra": map[string]any{"x": 7}, "About": "x",
	}
	without := []string{"N", "Stream", "CacheMarks", "PromptCacheKey", "About"}
	key := func(r dialect.Request) sdk.Key { return r.Key("http://x", "/y", "z") }
	seen := map[sdk.Key]string{key(dialect.Request{}): "the empty request"}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[dialect.Request]()) {
		value, ok := values[f.Name]
		if !ok {
			t.Fatalf("%s is new: give it a value here", f.Name)
		}
		var r dialect.Request
		reflect.ValueOf(&r).Elem().FieldByIndex(f.Index).Set(reflect.ValueOf(value))
		changed := key(r)
		if other := seen[changed]; (other != "") != slices.Contains(without, f.Name) {
			t.Errorf("%s: its key is that of %q", f.Name, other)
		}
		seen[changed] = f.Name
	}
	chat := func(m sdk.Message) sdk.Key { return key(dialect.Request{Messages: []sdk.Message{m}}) }
	if plain := chat(sdk.Message{Text: "q"}); chat(sdk.Message{Text: "q", Shared: true}) != plain || chat(sdk.Message{Text: "q", Role: "user"}) == plain || chat(sdk.Message{Text: "p"}) == plain {
		t.Error("a message's role and text count, and nothing else of it")
	}
	var r dialect.Request
	for _, other := range []sdk.Key{r.Key("http://z", "/y", "z"), r.Key("http://x", "/z", "z"), r.Key("http://x", "/y"), r.Key("http://x", "/y", "", "z")} {
		if other == key(r) {
			t.Error("address, path and parts count")
		}
	}
}

func TestWritten(t *testing.T) {
	tests := []struct {
		choice  dialect.Choice
		want    string
		starved bool
	}{
		{dialect.Choice{Text: " yes\n", Finish: "stop"}, "yes", false},
		{dialect.Choice{Text: "<think>no</think>\nyes"}, "yes", false},
		{dialect.Choice{Text: "a\xff"}, "a\uFFFD", false},
		{dialect.Choice{Text: "ye", Finish: "length"}, "ye", false},
		{dialect.Choice{Text: " ", Finish: "stop"}, "(the model wrote nothing)", false},
		{dialect.Choice{Text: " ", Finish: "length"}, "(the answer was cut off; raise max_tokens)", true},
		{dialect.Choice{Thoughts: "hm", Finish: "length"}, "(the answer was cut off; raise max_tokens)", true},
		{dialect.Choice{Text: "<think>no, or yes", Finish: "length"}, "(the answer was cut off; raise max_tokens)", true},
		{dialect.Choice{Text: "yes", Finish: "content_filter"}, "(the server's filter took the answer)", false},
		{dialect.Choice{Refusal: "I\ncan't"}, "(the model refused: I can't)", false},
	}
	for _, test := range tests {
		got, err := test.choice.Written()
		if err != nil {
			got = "(" + err.Error() + ")"
		}
		if got != test.want || (err != nil) != (sdk.CodeOf(err) == sdk.CodeInvalid) || test.choice.Starved() != test.starved {
			t.Errorf("%+v: %q, starved %t", test.choice, got, test.choice.Starved())
		}
	}
}
