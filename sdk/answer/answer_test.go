package answer_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/answer"
)

var labels = []string{"card_lost", "Pin Change", "pin-reset", "PersonalEvent", "a b", "a_b", "3"}

func TestRead(t *testing.T) {
	plain := sdk.Prompt{Text: "?", Labels: labels}
	free := sdk.Prompt{Text: "?"}
	none := sdk.Prompt{Text: "?", Labels: labels, None: "none of these"}
	object := sdk.Prompt{Labels: labels, Fields: []string{"reasoning", "label"}, None: "none of these"}
	exact, normal, near := answer.Options{}, answer.Options{Normalise: true}, answer.Options{Nearest: .5}
	tests := []struct {
		name    string
		text    string
		prompt  sdk.Prompt
		options answer.Options
		want    string
		reason  string
	}{
		{name: "a line", text: " card_lost \nText: next", prompt: plain, want: "card_lost"},
		{name: "behind a line break", text: "\r\n\n card_lost\r\nmore", prompt: free, want: "card_lost"},
		{name: "behind what was thought", text: "<think>\ncard_lost?\nno\n</think>\n\npin-reset", prompt: plain, want: "pin-reset"},
		{name: "a label with blanks around it", text: "lead", prompt: sdk.Prompt{Labels: []string{"a", " lead"}}, want: " lead"},
		{name: "a label of two lines", text: "new line", prompt: sdk.Prompt{Labels: []string{"new\nline"}}, want: "new\nline"},
		{name: "the label that is written so goes first", text: "new line", prompt: sdk.Prompt{Labels: []string{"new\nline", "new line"}}, want: "new line"},
		{name: "off the list, as it is", text: "weather", prompt: plain, options: normal, want: "weather"},
		{name: "nothing", text: " \n\t", prompt: plain, reason: "the model wrote nothing"},
		{name: "thoughts that were cut off", text: " <think>card_lost, or", prompt: plain, reason: "the model wrote nothing"},
		{name: "only thoughts", text: "<think>hm</think>", prompt: plain, reason: "the model wrote nothing"},
		{name: "case matters", text: "Card_Lost", prompt: plain, options: exact, want: "Card_Lost"},
		{name: "case", text: "Card Lost", prompt: plain, options: normal, want: "card_lost"},
		{name: "hyphens", text: "pin‐change", prompt: plain, options: normal, want: "Pin Change"},
		{name: "words run together", text: "personal event", prompt: plain, options: normal, want: "PersonalEvent"},
		{name: "two labels are equal but for that", text: "A-B", prompt: plain, options: normal, want: "A-B"},
		{name: "one of them exactly", text: "a b", prompt: plain, options: normal, want: "a b"},
		{name: "only separators", text: "- _", prompt: sdk.Prompt{Labels: []string{"_"}}, options: normal, want: "- _"},
		{name: "no list, nothing to map to", text: "Card Lost", prompt: free, options: answer.Options{Normalise: true, Nearest: .1}, want: "Card Lost"},
		{name: "the nearest", text: "The customer's card is lost", prompt: plain, options: near, want: "card_lost"},
		{name: "not near enough", text: "The customer's card is lost", prompt: plain, options: answer.Options{Nearest: .6}, want: "The customer's card is lost"},
		{name: "as near to two", text: "pin", prompt: plain, options: near, want: "pin"},
		{name: "near to none", text: "weather", prompt: plain, options: answer.Options{Nearest: .01}, want: "weather"},
		{name: "equal goes before near", text: "pin reset", prompt: plain, options: answer.Options{Normalise: true, Nearest: .1}, want: "pin-reset"},
		{name: "none", text: "none of these", prompt: none, want: ""},
		{name: "none where it is not allowed", text: "none of these", prompt: plain, want: "none of these"},
		{name: "none, nearly", text: "None_of_these", prompt: none, options: normal, want: ""},
		{name: "nearest to none", text: "it is none of these labels", prompt: none, options: near, want: ""},

		{name: "object", text: `{"reasoning": "a card", "label": "card_lost"}`, prompt: object, want: "card_lost"},
		{name: "in a fence", text: "Sure:\n```json\n{\"label\": \"card_lost\"}\n```\n", prompt: object, want: "card_lost"},
		{name: "behind braces", text: `I'd say {so}: {"why": {}} {"label": "card_lost"} {"label": "pin-reset"}`, prompt: object, want: "card_lost"},
		{name: "mapped", text: `{"label": " CARD LOST "}`, prompt: object, options: normal, want: "card_lost"},
		{name: "a number", text: `{"label": 3}`, prompt: object, want: "3"},
		{name: "none in an object", text: `{"label": "none of these"}`, prompt: object, want: ""},
		{name: "no object", text: "card_lost", prompt: object, reason: `not a JSON object with "label"`},
		{name: "another object", text: `{"answer": "card_lost"}`, prompt: object, reason: `not a JSON object with "label"`},
		{name: "cut off", text: `{"reasoning": "a card", "label": "card_lo`, prompt: object, reason: `not a JSON object with "label"`},
		{name: "null", text: `{"label": null}`, prompt: object, reason: `"label" in the JSON object is empty`},
		{name: "a list", text: `{"label": ["card_lost"]}`, prompt: object, reason: `"label" in the JSON object is not a text`},
		{name: "empty", text: `{"label": " "}`, prompt: object, reason: `"label" in the JSON object is empty`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := answer.Read(test.text, test.prompt, test.options)
			if want := (sdk.Answer{Label: test.want, Weight: 1, Reason: test.reason}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// TestReadAll reads lists of labels.
func TestReadAll(t *testing.T) {
	p := sdk.Prompt{Labels: labels, Fields: []string{"reasoning", sdk.LabelsProperty}}
	var many []string
	for i := range 200 {
		many = append(many, strconv.Itoa(i))
	}
	tests := []struct {
		name, text string
		options    answer.Options
		want       []string
		reason     string
	}{
		{name: "the likeliest first", text: `{"reasoning": "a card", "labels": ["card_lost", "pin-reset", 3]}`, want: []string{"card_lost", "pin-reset", "3"}},
		{name: "off the list, as it is", text: `{"labels": ["weather", "card_lost"]}`, want: []string{"weather", "card_lost"}},
		{name: "repeated", text: `{"labels": ["CARD LOST", "card_lost", "pin-reset"]}`, options: answer.Options{Normalise: true}, want: []string{"card_lost", "pin-reset"}},
		{name: "empty", text: `{"labels": []}`, want: []string{""}},
		{name: "in a fence, behind another object", text: "{\"label\": \"3\"}\n```json\n{\"labels\": [\"3\"]}\n```", want: []string{"3"}},
		{name: "as many as are read", text: `{"labels": ["` + strings.Join(many, `","`) + `"]}`, want: many[:100]},
		{name: "no list", text: `{"labels": "card_lost"}`, reason: `"labels" in the JSON object is not a list`},
		{name: "null", text: `{"labels": null}`, reason: `"labels" in the JSON object is not a list`},
		{name: "a list in it", text: `{"labels": ["card_lost", ["3"]]}`, reason: `"labels" in the JSON object is not a text`},
		{name: "nothing in it", text: `{"labels": ["card_lost", ""]}`, reason: `"labels" in the JSON object is empty`},
		{name: "one label", text: `{"label": "card_lost"}`, reason: `not a JSON object with "labels"`},
		{name: "nothing", text: "<think>hm</think>", reason: "the model wrote nothing"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := answer.ReadAll(test.text, p, test.options)
			var want []sdk.Answer
			for i, label := range test.want {
				want = append(want, sdk.Answer{Label: label, Weight: 1 / float64(i+1)})
			}
			if test.reason != "" {
				want = []sdk.Answer{{Weight: 1, Reason: test.reason}}
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if first := answer.Read(test.text, p, test.options); first != want[0] {
				t.Errorf("the first is %+v, want %+v", first, want[0])
			}
		})
	}
}

// The list of the prompt is shared by all items of a batch.
func TestReadLeavesThePromptAlone(t *testing.T) {
	list := append(make([]string, 0, 8), "a", "b")
	answer.Read("x", sdk.Prompt{Labels: list, None: "none"}, answer.Options{Normalise: true, Nearest: .5})
	if got := list[:3]; got[2] != "" {
		t.Errorf("the list has been written to: %q", got)
	}
}

func TestReadTakesNoTimeOverDeepObjects(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 100_000)
	start := time.Now()
	if got := answer.Read(deep, sdk.Prompt{Fields: []string{"label"}}, answer.Options{}); got.Reason == "" {
		t.Errorf("got %+v", got)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"label": "card_lost"}`, true)
	f.Add("```\n{{\"label\": 1e999}", true)
	f.Add("Pin\u2010change\nx", false)
	f.Fuzz(func(t *testing.T, text string, object bool) {
		p := sdk.Prompt{Labels: labels, None: "none"}
		if object {
			p.Fields = []string{"label"}
		}
		got := answer.Read(text, p, answer.Options{Normalise: true, Nearest: .3})
		if got.Weight != 1 || strings.ContainsAny(got.Label, "\n") || got.Label != "" && got.Reason != "" {
			t.Errorf("%q gave %+v", text, got)
		}
	})
}
