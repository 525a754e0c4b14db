package openai

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/answer"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestAsksAgain shows a model what was wrong, and leaves its first question as it is.
func TestAsksAgain(t *testing.T) {
	f := opened(t, 1, modelserver.Options{Answer: func(a modelserver.Ask, _ int) string {
		if len(a.Messages) > 2 {
			return "pin"
		}
		return "<think>hm</think>It is my card."
	}}, `, "structured": "off"`)
	chat := []sdk.Message{{Role: sdk.MessageSystem, Text: "sort"}, {Role: sdk.MessageUser, Text: "gone"}}
	item := sdk.Item{Prompts: []sdk.Prompt{{Messages: chat, Labels: []string{"card_lost", "pin"}, None: "none", Fields: []string{"why", "label"}}}}
	first, err := f.one(t, item)
	if err != nil || first[0].Text != "It is my card." || first[0].Answers[0].Reason != `not a JSON object with "label"` {
		t.Fatalf("first: %+v, error %v", first, err)
	}
	item.Drawn, item.Rejected = 1, []sdk.Rejection{{Text: first[0].Text, Reason: first[0].Answers[0].Reason}}
	second, err := f.one(t, item)
	if err != nil || second[0].Answers[0].Label != "pin" {
		t.Fatalf("second: %+v, error %v", second, err)
	}
	var asked [][]modelserver.Message
	for _, a := range f.server.Asks() {
		asked = append(asked, a.Messages)
	}
	want := []modelserver.Message{{Role: "system", Content: "sort"}, {Role: "user", Content: "gone"}}
	again := append(slices.Clip(want), modelserver.Message{Role: "assistant", Content: "It is my card."}, modelserver.Message{Role: "user", Content: "This answer cannot be used: not a JSON object with \"label\".\n" +
		"Answer again with one JSON object and nothing else. Its property \"label\" is one of these, written exactly so: \"card_lost\",\"pin\". If there is none that fits, it is \"none\"."})
	if d := cmp.Diff([][]modelserver.Message{want, again}, asked); d != "" {
		t.Errorf("asked (-want +got):\n%s", d)
	}
	if len(item.Prompts[0].Messages) != 2 || cap(chat) != 2 {
		t.Error("the prompt's messages have been written to")
	}
	f.reopen(t, 1, `, "structured": "off"`)
	if samples, err := f.one(t, item); err != nil || samples[0].Answers[0].Label != "pin" || len(f.server.Asks()) != 2 {
		t.Errorf("from the cache: %+v, error %v, after %d requests", samples, err, len(f.server.Asks()))
	}
}

func TestAgain(t *testing.T) {
	labels := []string{"a", "b"}
	many := strings.Split(strings.Repeat("label ", 400), " ")
	one := []sdk.Rejection{{Text: "x", Reason: "it names several labels"}}
	tests := []struct {
		name     string
		prompt   sdk.Prompt
		rejected []sdk.Rejection
		want     []string
	}{
		{"nothing", sdk.Prompt{Labels: labels}, nil, nil},
		{"nothing that was written", sdk.Prompt{Labels: labels}, []sdk.Rejection{{Text: " \n", Reason: answer.Nothing}}, nil},
		{"a line", sdk.Prompt{Labels: labels, None: "none"}, one,
			[]string{"x", "This answer cannot be used: it names several labels.\nAnswer again with a label and nothing else: one of these, written exactly so: \"a\",\"b\". If there is none that fits, it is \"none\"."}},
		{"a list", sdk.Prompt{Labels: labels, Fields: []string{"labels"}}, one,
			[]string{"x", "This answer cannot be used: it names several labels.\nAnswer again with one JSON object and nothing else. Each element of its list \"labels\" is one of these, written exactly so: \"a\",\"b\"."}},
		{"more labels than are listed", sdk.Prompt{Labels: many}, one,
			[]string{"x", "This answer cannot be used: it names several labels.\nAnswer again with a label and nothing else: one of the allowed labels, written exactly as it was given."}},
		{"any label", sdk.Prompt{}, one, []string{"x", "This answer cannot be used: it names several labels.\nAnswer again with a label and nothing else: a label."}},
		{"cut off", sdk.Prompt{}, []sdk.Rejection{{Text: "x", Reason: answer.CutOff}},
			[]string{"x", "This answer cannot be used: it was too long and was cut off.\nAnswer again with a label and nothing else: a label."}},
		{"passages", sdk.Prompt{Passages: []string{"1"}, None: "no"}, one,
			[]string{"x", "This answer cannot be used: it names several labels.\nAnswer again from the passages, and cite them by their numbers. If there is none that fits, it is \"no\"."}},
		{"no passages", sdk.Prompt{Passages: []string{}}, one, []string{"x", "This answer cannot be used: it names several labels.\nAnswer again."}},
		{"the last that differ", sdk.Prompt{Labels: labels}, []sdk.Rejection{{Text: "w", Reason: "r"}, {Text: "x", Reason: "r"}, {Text: "y", Reason: "r"}, {Text: "x", Reason: "s"}},
			[]string{"y", "This answer cannot be used: r.", "x", "This answer cannot be used: s.\nAnswer again with a label and nothing else: one of these, written exactly so: \"a\",\"b\"."}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for i, m := range again(test.prompt, test.rejected) {
				if want := []string{sdk.MessageAssistant, sdk.MessageUser}[i%2]; m.Role != want {
					t.Errorf("turn %d is the %s's", i, m.Role)
				}
				got = append(got, m.Text)
			}
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// What a further try takes at most is forecast before anybody knows what is rejected.
func TestForecastOfFurtherTries(t *testing.T) {
	f := opened(t, 1, modelserver.Options{}, "")
	must.Do(t, f.host.KeepProfile(t.Context(), f.Address(), "tiny", json.RawMessage(`{"thinking": "no"}`)))
	item := sdk.Item{Prompts: []sdk.Prompt{{Text: "p", Labels: []string{"a", "b"}}}}
	first, err := f.Forecast(item)
	must.Do(t, err)
	item.Drawn = 1
	most, err := f.Forecast(item)
	must.Do(t, err)
	item.Rejected = []sdk.Rejection{{Text: strings.Repeat("é", 9000), Reason: strings.Repeat("r", 9000)}, {Text: strings.Repeat("ü", 9000), Reason: strings.Repeat("ß", 9000)}}
	known, err := f.Forecast(item)
	must.Do(t, err)
	if a, b, c := first.Most.InputTokens, known.Most.InputTokens, most.Most.InputTokens; a >= b || b > c {
		t.Errorf("at most %d tokens the first time, %d the second, %d where nobody knows what is rejected", a, b, c)
	}
}

// TestReasons keeps what a model says beside its label, where the file wants that.
func TestReasons(t *testing.T) {
	p := sdk.Prompt{Text: "p", Labels: []string{"pin"}, Fields: []string{"reasoning", "label"}}
	o := modelserver.Options{Answer: func(modelserver.Ask, int) string { return `{"reasoning": "a code", "label": "Pin"}` }}
	f := opened(t, 1, o, `, "reasons": true, "structured": "off"`)
	for arguments, want := range map[string]string{`, "reasons": true, "structured": "off"`: "a code", `, "structured": "off"`: ""} {
		f.reopen(t, 1, arguments)
		samples, err := f.one(t, sdk.Item{Prompts: []sdk.Prompt{p}})
		if err != nil || samples[0].Answers[0] != (sdk.Answer{Label: "pin", Weight: 1, Reading: "case", Explanation: want}) {
			t.Errorf("%s: %+v, error %v", arguments, samples, err)
		}
	}
	if n := len(f.server.Asks()); n != 1 {
		t.Errorf("%d requests: what is kept of a reply needs no other", n)
	}
}
