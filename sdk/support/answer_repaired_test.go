package support_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

var cards = []string{"card", "card_lost", "card_stolen", "Invoice Request", "1", "12", "B", "B+"}

// TestReadOfOtherForms reads answers in symbols and LaTeX, and from JSON with a mistake.
func TestReadOfOtherForms(t *testing.T) {
	line := sdk.Prompt{Text: "?", Labels: cards, None: "none_of_these"}
	object, list := line, line
	object.Fields, list.Fields = []string{"reasoning", "label"}, []string{"reasoning", "labels"}
	tests := []struct {
		name, text    string
		prompt        sdk.Prompt
		want, reading string
	}{
		{"a check mark", "✅ card_lost", line, "card_lost", "without check mark"},
		{"a check mark for an emoji", "✔\ufe0f card_lost", line, "card_lost", "without check mark"},
		{"a check mark and no space", "✓card_lost.", line, "card_lost", "without check mark, without full stop"},
		{"a check mark and bold", "✅ **card_lost**", line, "card_lost", "without markup, without check mark"},
		{"a check mark in bold", "**✅ Card lost**", line, "card_lost", "without markup, without check mark, case and separators"},
		{"a check mark in a list", "- ☑ card_lost", line, "card_lost", "without markup, without check mark"},
		{"a check mark and a number", "✅ 12", line, "12", "without check mark"},
		{"a hand", "👉 `card_lost`", line, "card_lost", "without markup, without check mark"},
		{"a check mark and a prefix", "✅ Label: card_lost", line, "card_lost", "without prefix"},
		{"a check mark behind a sentence", "I looked at the request.\n\n✅ card_lost", line, "card_lost", "without check mark"},
		{"a check mark before reasons", "✅ card_lost\n\nThe user misses it.", line, "card_lost", "without check mark"},
		{"a check mark for none", "✅ none of these", line, "", "without check mark, separators"},
		{"a check mark in JSON", `{"label": "✅ card_lost"}`, object, "card_lost", "without check mark"},
		{"a check mark for an object", "✅ card_lost", object, "card_lost", "from text, without check mark"},

		{"a box", `\boxed{card_lost}`, line, "card_lost", "without LaTeX"},
		{"a box of text", `\boxed{\text{card_lost}}`, line, "card_lost", "without LaTeX"},
		{"a box with dollars", `$\boxed{card_lost}$`, line, "card_lost", "without LaTeX"},
		{"a box with more dollars", `$$ \boxed{\mathrm{card\_lost}} $$`, line, "card_lost", "without markup, without LaTeX, separators"},
		{"a box with parentheses", `\(\boxed{\text{Invoice Request}}\)`, line, "Invoice Request", "without markup, without LaTeX"},
		{"a box with brackets", "\\[\n\\boxed{\\text{card lost}}\n\\]", line, "card_lost", "without LaTeX, separators"},
		{"a box and a full stop", `$\boxed{12}$.`, line, "12", "without full stop, without LaTeX"},
		{"a box behind a prefix", `**Final answer:** $\boxed{\text{card_lost}}$`, line, "card_lost", "without prefix, without markup, without LaTeX"},
		{"a box in a sentence", `The final answer is \boxed{card_lost}.`, line, "card_lost", "without prefix, without full stop, without LaTeX"},
		{"a box behind reasons", "The user misses it.\n\n\\boxed{card_lost}", line, "card_lost", "without LaTeX"},
		{"bold text", `$\textbf{card_lost}$`, line, "card_lost", "without LaTeX"},

		{"a comma too many", `{"label": "card_lost",}`, object, "card_lost", "repaired"},
		{"a comma too many over lines", "```json\n{\n  \"reasoning\": \"a, }\",\n  \"label\": \"Card lost\",\n}\n```", object, "card_lost", "repaired, case and separators"},
		{"a comma too many in a list", `{"labels": ["card_lost",],}`, object, "card_lost", "repaired, from another property, from a list"},
		{"a comma too many for a line", `{"label": "card_lost",}`, line, "card_lost", "from JSON, repaired"},
		{"a comma too many behind another property", `{"sure": true, "intent": "card_lost",}`, line, "card_lost", "from JSON, repaired, from another property"},
		{"without a brace", `{"reasoning": "not card_stolen", "label": "card_lost"`, object, "card_lost", "repaired"},
		{"without a brace for a line", "```json\n{\"label\": \"card_lost\"", line, "card_lost", "from JSON, repaired"},
		{"cut off in the reasons", `{"label": "card_lost", "why": "becau`, object, "card_lost", "repaired"},
		{"cut off in a name", `{"label": "card_lost", "wh`, object, "card_lost", "repaired"},
		{"cut off behind a comma", `{"label": 1,`, object, "1", "repaired"},
		{"cut off behind a name", `{"Label": "card_lost", "why":`, object, "card_lost", "repaired, from another property"},
		{"cut off in an object", `{"result": {"label": "card_lost", "why": "x`, object, "card_lost", "repaired"},
		{"cut off behind a list", `{"labels": ["card_lost"], "why": "x`, list, "card_lost", "repaired"},
		{"cut off behind none", `{"label": "none_of_these", "why": "x`, object, "", "repaired"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got, want := support.ReadAnswer(test.text, test.prompt, support.AnswerOptions{}), (sdk.Answer{Label: test.want, Weight: 1, Reading: test.reading}); got != want {
				t.Errorf("%q: got %+v, want %+v", test.text, got, want)
			}
			exact := support.ReadAnswer(test.text, test.prompt, support.AnswerOptions{Exact: true})
			if exact.Reason == "" && slices.Contains(append(cards, ""), exact.Label) {
				t.Errorf("%q was read exactly: %+v", test.text, exact)
			}
		})
	}
}

// TestOtherFormsRefused has texts in the same forms that may mean something else.
func TestOtherFormsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"two check marks":               "✅ card_lost\n✅ card_stolen",
		"a check and a cross":           "✅ card_lost\n❌ card_stolen",
		"a check mark for two":          "✅ card_lost, card_stolen",
		"a check mark and a hedge":      "✅ card_lost or card_stolen",
		"a check mark denied":           "✅ not card_lost",
		"a check mark and a question":   "✅ card_lost?",
		"a check mark denied below":     "✅ card_lost\nNo, it is not.",
		"a check mark that is a guess":  "Maybe this one:\n✅ card_lost",
		"a check mark in passing":       "The list says ✅ card_lost",
		"a check mark, another label":   "✅ card_lost\nIt may be card_stolen.",
		"a check mark on a denial":      "✅ No label: card_lost",
		"a check mark alone":            "✅",
		"a cross":                       "❌ card_lost",
		"a cross for an emoji":          "✖\ufe0f card_lost",
		"an empty box":                  "☐ card_lost",
		"a warning":                     "⚠\ufe0f card_lost",
		"a face":                        "🤔 card_lost",
		"no entry":                      "🚫 card_lost",
		"two boxes":                     `\boxed{card_lost} \boxed{card_stolen}`,
		"two boxes on lines":            "\\boxed{card_lost}\n\\boxed{card_stolen}",
		"a box of two":                  `\boxed{card_lost, card_stolen}`,
		"a box and a hedge":             `\boxed{card_lost} or \boxed{card_stolen}`,
		"a box denied":                  `not \boxed{card_lost}`,
		"a box that denies":             `\boxed{\neg card_lost}`,
		"a box struck out":              `\boxed{\cancel{card_lost}}`,
		"a box denied below":            "\\boxed{card_lost}\n\nThat is not what they want.",
		"a box that may be":             "Perhaps\n\\boxed{card_lost}",
		"a box without an end":          `\boxed{card_lost`,
		"a box of a longer label":       `\boxed{card_lost}_2`,
		"a box in passing":              `Write \boxed{card_lost} if a card is lost`,
		"a box to fill":                 `\boxed{}`,
		"a square root":                 `\sqrt{12}`,
		"an index":                      `\text{card}_{12}`,
		"another label beside a box":    "It looks like card_stolen.\n\\boxed{card_lost}",
		"no case":                       "This is not a case of card_lost.",
		"clearly no case":               "This is clearly not a case of card_lost.",
		"never a case":                  "This is never a case of card_lost.",
		"no case, in short":             "It isn't a case of card_lost.",
		"hardly a case":                 "This is hardly a case of card_lost.",
		"possibly a case":               "This is possibly a case of card_lost.",
		"a possible case":               "This is a possible case of card_lost.",
		"a case that may be":            "This may be a case of card_lost.",
		"a case that would be":          "This would be a case of card_lost.",
		"a case in doubt":               "I doubt this is a case of card_lost.",
		"a case if":                     "If this is a case of card_lost.",
		"a question for a case":         "Is this a case of card_lost?",
		"a question that states":        "This is a case of card_lost?",
		"a case of two":                 "This is a case of card_lost or card_stolen.",
		"a case of something else":      "This is clearly a case of card_lost_2.",
		"a case denied below":           "This is a case of card_lost.\nNo, wait.",
		"a case denied before":          "It is not easy. This is a case of card_lost.",
		"a case and a doubt":            "This is a case of card_lost. Or maybe it is not.",
		"a case and another":            "This is a case of card_lost. Card stolen fits, too.",
		"two cases":                     "This is a case of card_lost.\nThis is a case of card_stolen.",
		"a case in passing":             "This is a case of card_lost that somebody reported last week",
		"a case somebody wants":         "They say this is a case of card_lost.",
		"German no case":                "Das ist kein Fall von card_lost.",
		"German, perhaps a case":        "Das ist vielleicht ein Fall von card_lost.",
		"French no case":                "Ce n'est pas un cas de card_lost.",
		"Spanish no case":               "No es un caso de card_lost.",
		"Italian no case":               "Non è un caso di card_lost",
		"cut off in the label":          `{"label": "card_lo`,
		"cut off in a longer label":     `{"label": "card`,
		"cut off before the quote":      `{"label": "card_lost`,
		"cut off behind an escape":      `{"label": "card\`,
		"cut off behind a quote in it":  `{"label": "card\"`,
		"cut off in a number":           `{"label": 1`,
		"cut off in a number, spaces":   `{"label": 1 `,
		"cut off before the label":      `{"label": `,
		"cut off in the label again":    `{"label": "card_lost", "label": "card_st`,
		"cut off in a list":             `{"labels": ["card_lost", "card_st`,
		"cut off behind a list's first": `{"labels": ["card_lost"`,
		"cut off in another property":   `{"intent": "card_lost", "why": "becau`,
		"cut off in the reasons":        `{"reasoning": "card_lost", "lab`,
		"cut off, label in the reasons": `{"reasoning": "label: card_lost`,
		"cut off, two objects":          `{"a": {"label": "card_lost",}, "b": {"label": "card_stolen", "why": "x`,
		"a box behind a hedge":          `Possibly: \boxed{card_lost}`,
		"cut off, off the list":         `{"label": "card_found", "why": "x`,
		"cut off, null":                 `{"label": null, "why": "x`,
		"cut off, denied":               `This is not it: {"label": "card_lost", "why": "x`,
		"cut off, another label before": `card_stolen? No: {"label": "card_lost"`,
		"no comma":                      `{"label": "card_lost" "why": "x"}`,
		"a hedge in JSON":               `{"label": "card_lost" or "card_stolen"}`,
		"texts added":                   `{"label": "card" + "_lost"}`,
		"a quote in the label":          `{"label": "12" inches", "why": "x"}`,
		"a label without quotes":        `{"label": card_lost}`,
		"two commas":                    `{"label": "card_lost",,}`,
		"a comma too many, two objects": `{"label": "card_lost",} {"label": "card_stolen",}`,
		"a comma too many, two others":  `{"first": "card_lost", "second": "card_stolen",}`,
		"a comma too many, a list":      `{"label": ["card_lost", "card_stolen",]}`,
		"a comma too many, denied":      `{"not": "card_lost",}`,
		"a comma too many, denied below": `{"label": "card_lost",}
			No, that is wrong.`,
		"a comma too many, another label": `{"label": "card_lost",} or card_stolen`,
		"a comma too many, off the list":  `{"label": "card_found",}`,
	} {
		for _, fields := range [][]string{nil, {"reasoning", "label"}} {
			p := sdk.Prompt{Text: "?", Labels: cards, None: "none_of_these", Fields: fields}
			got := support.ReadAnswer(text, p, support.AnswerOptions{})
			if got.Reading != "" || got.Reason == "" && slices.Contains(append(cards, ""), got.Label) {
				t.Errorf("%s (%q): %q was read as %+v", name, fields, text, got)
			}
		}
	}
}

// TestNoCutChangesALabel cuts answers at every place: what is read is the whole answer's label, and
// only where that stands to its end.
func TestNoCutChangesALabel(t *testing.T) {
	for _, test := range []struct{ text, want, end string }{
		{`{"reasoning": "card or card_stolen", "label": "card_lost", "why": "the card is gone"}`, "card_lost", `card_lost"`},
		{`{"label": 12, "why": "a dozen, {and} more", "sure": 0.9}`, "12", "12,"},
		{`{"result": {"label": "B+", "scores": [1, 2]}, "of": "12"}`, "B+", `B+"`},
		{"```json\n{\"label\": \"Invoice Request\",\n \"why\": \"card\"}\n```", "Invoice Request", `Request"`},
	} {
		p := sdk.Prompt{Text: "?", Labels: cards, Fields: []string{"reasoning", "label"}}
		for cut := range len(test.text) {
			text, complete := test.text[:cut], strings.Contains(test.text[:cut], test.end)
			got := support.ReadAnswer(text, p, support.AnswerOptions{})
			if got.Reason == "" && (got.Label != test.want || !complete) {
				t.Errorf("%q was read as %+v", text, got)
			}
			if from, to := support.AnswerSpan(text, p, support.AnswerOptions{}); text[from:to] != "" && text[from:to] != test.want {
				t.Errorf("%q: the label is at %q", text, text[from:to])
			}
		}
	}
}
