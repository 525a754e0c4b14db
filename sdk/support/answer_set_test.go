package support_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// TestReadSets reads sets of labels; a question mark follows an answer with a Reason.
func TestReadSets(t *testing.T) {
	names := []string{"card_lost", "Pin Change", "food, drinks", "a", "b"}
	line := sdk.Prompt{Text: "?", Labels: names, None: "none of these"}
	object := sdk.Prompt{Labels: names, Fields: []string{"reasoning", "labels"}}
	many := support.AnswerOptions{Many: true}
	exact := support.AnswerOptions{Many: true, Exact: true}
	tests := []struct {
		name, text string
		prompt     sdk.Prompt
		options    support.AnswerOptions
		want       []string
	}{
		{"semicolons", "a; card_lost", line, many, []string{"a", "card_lost"}},
		{"commas", "b, Card Lost", line, many, []string{"b", "card_lost"}},
		{"a comma in a label", "food, drinks; a", line, many, []string{"food, drinks", "a"}},
		{"one label", "pin change", line, many, []string{"Pin Change"}},
		{"behind what it is called", "Labels: a, b", line, many, []string{"a", "b"}},
		{"lines", "- card_lost\n- **Pin Change**\n", line, many, []string{"card_lost", "Pin Change"}},
		{"a text that goes on", "a; b\nText: next\nLabels: card_lost", line, many, []string{"a", "b"}},
		{"an introduction", "These apply:\n1. card_lost\n2. pin change", line, many, []string{"card_lost", "Pin Change"}},
		{"off the list", "x; a", line, many, []string{"a", "x?"}},
		{"all off the list", "x; y", line, many, []string{"x?", "y?"}},
		{"two in a part", "a and b", line, many, []string{"a and b?"}},
		{"separators alone", "; ;", line, many, []string{"; ;?"}},
		{"one twice", "a; A; a", line, many, []string{"a"}},
		{"none", "none of these", line, many, []string{""}},
		{"none and a label", "none of these; a", line, many, []string{"a"}},
		{"JSON for a line", `{"labels": ["a", "b", "x"]}`, line, many, []string{"a", "b", "x?"}},
		{"an array for a line", `["a", "b"]`, line, many, []string{"a", "b"}},
		{"letter by letter", "a; b; A", line, exact, []string{"a", "b", "A?"}},
		{"letter by letter, a comma", "a, b", line, exact, []string{"a, b?"}},
		{"any label", "x, y; z", sdk.Prompt{Text: "?"}, many, []string{"x, y", "z"}},
		{"an empty set as examples have it", "[]", line, many, []string{""}},
		{"the nearest", "a; the card was lost", line, support.AnswerOptions{Many: true, Nearest: .5}, []string{"a", "card_lost"}},
		{"a list", `{"reasoning": "...", "labels": ["b", "x", "a"]}`, object, many, []string{"b", "a", "x?"}},
		{"an empty list", `{"labels": []}`, object, many, []string{""}},
		{"a text for a list", `{"labels": "a; b"}`, object, many, []string{"a", "b"}},
		{"the other property", `{"label": "a, b"}`, object, many, []string{"a", "b"}},
		{"a line for JSON", "a, b", object, many, []string{"a", "b"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, a := range support.ReadAnswers(test.text, test.prompt, test.options) {
				if a.Weight != 1 {
					t.Errorf("%s weighs %v", a.Label, a.Weight)
				}
				if a.Reason != "" {
					a.Label += "?"
				}
				got = append(got, a.Label)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
	for _, text := range []string{"", "{}", "nothing of this"} {
		if got := support.ReadAnswers(text, object, many); len(got) != 1 || got[0].Reason == "" {
			t.Errorf("%q: %+v", text, got)
		}
	}
	if from, to := support.AnswerSpan("a; b", line, many); from != 0 || to != 0 {
		t.Errorf("a set stands in bytes %d to %d", from, to)
	}
}

// TestReadLongSets: a text of any length gives few labels.
func TestReadLongSets(t *testing.T) {
	var names []string
	for i := range 300 {
		names = append(names, "label "+strconv.Itoa(i))
	}
	p := sdk.Prompt{Labels: names}
	for _, text := range []string{strings.Join(names, "; "), strings.Join(names, "\n"), strings.Repeat("x, ", 20_000), strings.Repeat("x\n", 20_000)} {
		got := support.ReadAnswers(text, p, support.AnswerOptions{Many: true})
		if len(got) > 100 {
			t.Errorf("%d labels", len(got))
		}
	}
}
