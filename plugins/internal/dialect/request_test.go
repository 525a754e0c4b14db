package dialect_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/sdk"
)

// TestKey changes every field of a request: all change the key but those that change no answer.
func TestKey(t *testing.T) {
	seven := 7
	values := map[string]any{
		"Model": "x", "Messages": []sdk.Message{{Role: sdk.MessageUser, Text: "x"}}, "Prompt": "x", "N": 7, "Temperature": number(7), "TopP": number(.7), "Seed": &seven,
		"MaxTokens": 7, "Stop": []string{"x"}, "Logprobs": true, "Schema": json.RawMessage(`{}`), "Form": dialect.FormTool, "Choice": []string{"x"}, "Grammar": "x",
		"Effort": "x", "MaxTokensField": "x", "Stream": true, "CacheMarks": true, "PromptCacheKey": "x", "Extra": map[string]any{"x": 7},
	}
	without := []string{"N", "Stream", "CacheMarks", "PromptCacheKey"}
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
