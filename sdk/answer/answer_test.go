package answer_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/width"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/answer"
)

var labels = []string{"card_lost", "Pin Change", "pin-reset", "PersonalEvent", "a b", "a_b", "3"}

func TestRead(t *testing.T) {
	plain := sdk.Prompt{Text: "?", Labels: labels}
	free := sdk.Prompt{Text: "?"}
	none := sdk.Prompt{Text: "?", Labels: labels, None: "none of these"}
	object := sdk.Prompt{Labels: labels, Fields: []string{"reasoning", "label"}, None: "none of these"}
	exact, normal, near := answer.Options{Exact: true}, answer.Options{}, answer.Options{Nearest: .5}
	tests := []struct {
		name    string
		text    string
		prompt  sdk.Prompt
		options answer.Options
		want    string
		reason  string
		reading string
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
		{name: "case", text: "Card Lost", prompt: plain, options: normal, want: "card_lost", reading: "case and separators"},
		{name: "hyphens", text: "pin‐change", prompt: plain, options: normal, want: "Pin Change", reading: "case and separators"},
		{name: "words run together", text: "personal event", prompt: plain, options: normal, want: "PersonalEvent", reading: "case and separators"},
		{name: "two labels are equal but for that", text: "A-B", prompt: plain, options: normal, want: "A-B"},
		{name: "one of them exactly", text: "a b", prompt: plain, options: normal, want: "a b"},
		{name: "only separators", text: "- _", prompt: sdk.Prompt{Labels: []string{"_"}}, options: normal, want: "- _"},
		{name: "no list, nothing to map to", text: "Card Lost", prompt: free, options: answer.Options{Nearest: .1}, want: "Card Lost"},
		{name: "the nearest", text: "The customer's card is lost", prompt: plain, options: near, want: "card_lost", reading: "nearest"},
		{name: "not near enough", text: "The customer's card is lost", prompt: plain, options: answer.Options{Nearest: .6}, want: "The customer's card is lost"},
		{name: "as near to two", text: "pin", prompt: plain, options: near, want: "pin"},
		{name: "near to none", text: "weather", prompt: plain, options: answer.Options{Nearest: .01}, want: "weather"},
		{name: "equal goes before near", text: "pin reset", prompt: plain, options: answer.Options{Nearest: .1}, want: "pin-reset", reading: "separators"},
		{name: "none", text: "none of these", prompt: none, want: ""},
		{name: "none where it is not allowed", text: "none of these", prompt: plain, want: "none of these"},
		{name: "none, nearly", text: "None_of_these", prompt: none, options: normal, want: "", reading: "case and separators"},
		{name: "nearest to none", text: "it is none of these labels", prompt: none, options: near, want: "", reading: "nearest"},

		{name: "object", text: `{"reasoning": "a card", "label": "card_lost"}`, prompt: object, want: "card_lost"},
		{name: "in a fence", text: "Sure:\n```json\n{\"label\": \"card_lost\"}\n```\n", prompt: object, want: "card_lost"},
		{name: "behind braces", text: `I'd say {so}: {"why": {}} {"label": "card_lost"} {"label": "pin-reset"}`, prompt: object, want: "card_lost"},
		{name: "mapped", text: `{"label": " CARD LOST "}`, prompt: object, options: normal, want: "card_lost", reading: "case and separators"},
		{name: "a number", text: `{"label": 3}`, prompt: object, want: "3"},
		{name: "none in an object", text: `{"label": "none of these"}`, prompt: object, want: ""},
		{name: "no object", options: exact, text: "card_lost", prompt: object, reason: `not a JSON object with "label"`},
		{name: "another object", options: exact, text: `{"answer": "card_lost"}`, prompt: object, reason: `not a JSON object with "label"`},
		{name: "cut off", text: `{"reasoning": "a card", "label": "card_lo`, prompt: object, reason: `not a JSON object with "label"`},
		{name: "null", text: `{"label": null}`, prompt: object, reason: `"label" in the JSON object is empty`},
		{name: "a list", options: exact, text: `{"label": ["card_lost"]}`, prompt: object, reason: `"label" in the JSON object is not a text`},
		{name: "empty", text: `{"label": " "}`, prompt: object, reason: `"label" in the JSON object is empty`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := answer.Read(test.text, test.prompt, test.options)
			if want := (sdk.Answer{Label: test.want, Weight: 1, Reason: test.reason, Reading: test.reading}); got != want {
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
		readings   []string
	}{
		{name: "the likeliest first", text: `{"reasoning": "a card", "labels": ["card_lost", "pin-reset", 3]}`, want: []string{"card_lost", "pin-reset", "3"}},
		{name: "off the list, as it is", text: `{"labels": ["weather", "card_lost"]}`, want: []string{"weather", "card_lost"}},
		{name: "repeated", text: `{"labels": ["CARD LOST", "card_lost", "pin-reset"]}`, want: []string{"card_lost", "pin-reset"}, readings: []string{"case and separators", ""}},
		{name: "empty", text: `{"labels": []}`, want: []string{""}},
		{name: "in a fence, behind another object", text: "{\"label\": \"3\"}\n```json\n{\"labels\": [\"3\"]}\n```", want: []string{"3"}},
		{name: "as many as are read", text: `{"labels": ["` + strings.Join(many, `","`) + `"]}`, want: many[:100]},
		{name: "no list", text: `{"labels": "card_lost"}`, options: answer.Options{Exact: true}, reason: `"labels" in the JSON object is not a list`},
		{name: "null", text: `{"labels": null}`, reason: `"labels" in the JSON object is not a list`},
		{name: "a list in it", text: `{"labels": ["card_lost", ["3"]]}`, reason: `"labels" in the JSON object is not a text`},
		{name: "nothing in it", text: `{"labels": ["card_lost", ""]}`, reason: `"labels" in the JSON object is empty`},
		{name: "a text for a list", text: `{"labels": "card_lost"}`, want: []string{"card_lost"}, readings: []string{"without a list"}},
		{name: "a label for a list", text: `{"label": "card_lost"}`, want: []string{"card_lost"}, readings: []string{"from another property, without a list"}},
		{name: "a list alone", text: "```json\n[\"card_lost\", \"Pin Reset\"]\n```", want: []string{"card_lost", "pin-reset"}, readings: []string{"from a list alone", "from a list alone, case and separators"}},
		{name: "a list off the list", text: `["card_lost", "weather"]`, reason: `not a JSON object with "labels"`},
		{name: "one label", text: `{"label": "card_lost"}`, options: answer.Options{Exact: true}, reason: `not a JSON object with "labels"`},
		{name: "nothing", text: "<think>hm</think>", reason: "the model wrote nothing"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := answer.ReadAll(test.text, p, test.options)
			var want []sdk.Answer
			for i, label := range test.want {
				want = append(want, sdk.Answer{Label: label, Weight: 1 / float64(i+1)})
				if test.readings != nil {
					want[i].Reading = test.readings[i]
				}
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
	answer.Read("x", sdk.Prompt{Labels: list, None: "none"}, answer.Options{Nearest: .5})
	if got := list[:3]; got[2] != "" {
		t.Errorf("the list has been written to: %q", got)
	}
}

func TestReadTakesNoTime(t *testing.T) {
	n := 5_000
	if testing.Short() {
		n = 1_000
	}
	start := time.Now()
	for _, text := range []string{
		strings.Repeat(`{"a":`, n), strings.Repeat(`{"a":"{`, n), strings.Repeat(`{"a": "{}"} `, n), strings.Repeat(`"`, n), strings.Repeat(": ", n), strings.Repeat("a:\n", n),
		strings.Repeat("<a>", n), strings.Repeat("*a ", n), strings.Repeat("<think>", n), strings.Repeat("</think>", n), strings.Repeat("<|message|>", n),
		strings.Repeat("- x\n", n), strings.Repeat("```\n", n), strings.Repeat("[", n), strings.Repeat("_", n), "Label: card_lost " + strings.Repeat("a ", n), strings.Repeat(". ", n),
		strings.Repeat("a ", n) + ". Label: card_lost",
	} {
		for _, fields := range [][]string{nil, {"label"}, {"labels"}} {
			if got := answer.Read(text, sdk.Prompt{Labels: labels, Fields: fields}, answer.Options{}); got.Reading != "" && got.Label != "card_lost" {
				t.Errorf("%.20q: got %.100v", text, got)
			}
		}
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}

// stands reports whether a label stands in a text, where nothing but letters and digits counts.
func stands(text, label string) bool {
	letters := func(text string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) {
				return unicode.ToLower(unicode.ToUpper(r))
			}
			return -1
		}, norm.NFC.String(width.Fold.String(text)))
	}
	return strings.Contains(text, `\`) || strings.Contains(letters(text), letters(label)) // JSON may have escapes
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{"**card_lost**.", "Label: card_lost", "`card_lost` or pin-reset", "```\ncard_lost\n```", "<thinking>a b</thinking>\"Pin Change\"", "not card_lost",
		"<|channel|>analysis<|message|>x<|end|><|channel|>final<|message|>a_b<|return|>", "[\"card_lost\"]", "<answer>none</answer>", "the label is - 3"} {
		f.Add(text, false)
		f.Add(text, true)
	}
	f.Add(`{"label": "card_lost"}`, true)
	f.Add("```\n{{\"label\": 1e999}", true)
	f.Add("Pin\u2010change\nx", false)
	f.Fuzz(isRead)
}

// isRead checks what is read of any text: one of the labels, which stands there.
func isRead(t *testing.T, text string, object bool) {
	p := sdk.Prompt{Labels: labels, None: "none"}
	if object {
		p.Fields = []string{"label"}
	}
	for _, a := range answer.ReadAll(text, p, answer.Options{}) {
		if a.Reading != "" && (a.Label != "" && !slices.Contains(labels, a.Label) || !stands(text, cmp.Or(a.Label, p.None))) {
			t.Errorf("%q gave %+v", text, a)
		}
	}
	from, to := answer.Span(text, p, answer.Options{})
	if from < 0 || from > to || to > len(text) {
		t.Errorf("%q: the label stands from %d to %d", text, from, to)
	}
	got := answer.Read(text, p, answer.Options{Nearest: .3})
	if got.Weight != 1 || strings.ContainsAny(got.Label, "\n") || got.Label != "" && got.Reason != "" {
		t.Errorf("%q gave %+v", text, got)
	}
}

// TestReadOfPieces puts together what models write in any order.
func TestReadOfPieces(t *testing.T) {
	pieces := []string{
		"card_lost", "Pin Change", "a", "b", "3", "none", "Label", "is", "not", "é", "1", "\u0430", "**", "*", "_", "`", "```", "~~", "#", "-", "- ", ":", ".", "\"", "'", "\\", " ", "\n", "\x00",
		"<think>", "</think>", "<a>", "</a>", "<|channel|>", "<|message|>", "<|end|>", "final", "analysis", "assistantfinal", "{", "}", "[", "]", ",", `"label"`, `{"label":`, `"card_lost"}`, `"{\"label\": \"a\"}"`,
	}
	r := rand.New(rand.NewPCG(1, 2))
	times := 30_000
	if testing.Short() {
		times = 3000
	}
	for range times {
		var text strings.Builder
		for range r.IntN(30) {
			text.WriteString(pieces[r.IntN(len(pieces))])
		}
		isRead(t, text.String(), r.IntN(2) == 0)
	}
}
