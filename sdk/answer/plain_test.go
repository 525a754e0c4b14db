package answer_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/answer"
)

var intents = []string{"card_lost", "card_stolen", "invoice_request", "Café au lait", "rating", "A", "A+", "1", "12", "greeting"}

// TestPlainRead reads what models write in place of a label, as people would.
func TestPlainRead(t *testing.T) {
	tests := []struct{ name, text, want, reading string }{
		{"letter by letter", "card_lost", "card_lost", ""},
		{"bold", "**card_lost**", "card_lost", "without markup"},
		{"italic", "_card_lost_", "card_lost", "without markup"},
		{"both", "***card_lost***", "card_lost", "without markup"},
		{"backticks", "`card_lost`", "card_lost", "without markup"},
		{"bold code and a full stop", "**`card_lost`**.", "card_lost", "without markup, without full stop"},
		{"a heading", "## card_lost", "card_lost", "without markup"},
		{"a bullet", "- card_lost", "card_lost", "without markup"},
		{"a number", "1. **card_lost**", "card_lost", "without markup"},
		{"escaped", `card\_lost`, "card_lost", "without markup, separators"},
		{"quotes", `"card_lost"`, "card_lost", "without quotes"},
		{"quotes and a full stop", `"card_lost".`, "card_lost", "without full stop, without quotes"},
		{"a full stop in quotes", `“card_lost.”`, "card_lost", "without quotes, without full stop"},
		{"other quotes", `„card_lost“`, "card_lost", "without quotes"},
		{"more quotes", `« card_lost »`, "card_lost", "without quotes"},
		{"case", "Card_Lost", "card_lost", "case"},
		{"separators", "card lost", "card_lost", "separators"},
		{"as a title", "Invoice Request", "invoice_request", "case and separators"},
		{"in one word", "InvoiceRequest", "invoice_request", "case and separators"},
		{"a non-breaking hyphen", "card\u2011lost", "card_lost", "separators"},
		{"wide letters", "ｃａｒｄ＿ｌｏｓｔ", "card_lost", "separators"},
		{"a combining accent", "Cafe\u0301 au lait", "Café au lait", "separators"},
		{"a grade", "A+", "A+", ""},
		{"what follows the line", "**card_lost**\n\nThe user has lost a card.", "card_lost", "without markup"},

		{"Label:", "Label: card_lost", "card_lost", "without prefix"},
		{"Intent:", "Intent: Invoice Request.", "invoice_request", "without prefix, without full stop, case and separators"},
		{"bold before the colon", "**Label:** card_lost", "card_lost", "without prefix, without markup"},
		{"bold on both sides", "**Label**: **card_lost**", "card_lost", "without prefix, without markup"},
		{"a dash", "Answer - card_lost", "card_lost", "without prefix"},
		{"an em dash", "Answer — `card_lost`", "card_lost", "without prefix, without markup"},
		{"an arrow", "Category -> card_lost", "card_lost", "without prefix"},
		{"an equals sign", `label = "card_lost"`, "card_lost", "without prefix, without quotes"},
		{"a sentence", "The label is card_lost.", "card_lost", "without prefix, without full stop"},
		{"a sentence with quotes", `The correct label is "card_lost".`, "card_lost", "without prefix, without full stop, without quotes"},
		{"German", "Die Kategorie ist card_lost.", "card_lost", "without prefix, without full stop"},
		{"French", "Étiquette : card_lost", "card_lost", "without prefix"},
		{"Spanish", "La etiqueta es card_lost", "card_lost", "without prefix"},
		{"Italian", "L'etichetta è card_lost", "card_lost", "without prefix"},
		{"Chinese", "标签：card_lost", "card_lost", "without prefix"},
		{"on the next line", "Here is the label:\n\n**card_lost**", "card_lost", "without prefix, without markup"},
		{"behind a sentence", "The user misses one card. Label: card_lost", "card_lost", "without prefix"},
		{"at the end of reasons", "The user says that the card is gone.\n\nFinal answer: card_lost\n", "card_lost", "without prefix"},
		{"the same label twice", "card_lost: the answer is card_lost", "card_lost", "without prefix"},

		{"a fence", "```\ncard_lost\n```", "card_lost", "from a fence"},
		{"a fence with a language", "```text\ncard_lost\n```\n", "card_lost", "from a fence"},
		{"a fence behind a prefix", "Here is the label:\n```\nCard lost\n```", "card_lost", "from a fence, without prefix, case and separators"},
		{"a fence on one line", "```card_lost```", "card_lost", "without markup"},
		{"an element", "<answer>card_lost</answer>", "card_lost", "from an element"},
		{"an element over lines", "<output>\n<label>Card lost</label>\n</output>", "card_lost", "from an element, case and separators"},

		{"thoughts", "<think>card_stolen?</think>\ncard_lost", "card_lost", ""},
		{"thinking", "<thinking>card_stolen or\ncard_lost</thinking>\n\n**card_lost**", "card_lost", "without markup"},
		{"reasoning", "<reasoning>hm</reasoning> card_lost", "card_lost", ""},
		{"a scratchpad", "<scratchpad>\ncard_stolen\n</scratchpad>\n<answer>card_lost</answer>", "card_lost", "from an element"},
		{"a reflection behind the label", "card_lost <reflection>or card_stolen", "card_lost", ""},
		{"triangles", "◁think▷card_stolen◁/think▷card_lost", "card_lost", ""},
		{"square brackets", "[THINK]card_stolen[/THINK]card_lost", "card_lost", ""},
		{"a name space", "<seed:think>card_stolen</seed:think>card_lost", "card_lost", ""},
		{"tokens", "<|START_THINKING|>card_stolen<|END_THINKING|>card_lost", "card_lost", ""},
		{"thoughts that the prompt has begun", "is it card_stolen?\n</think>\n\ncard_lost", "card_lost", ""},
		{"several thoughts", "<think>a</think><reasoning>card_stolen</reasoning>card_lost", "card_lost", ""},

		{"channels", "<|channel|>analysis<|message|>card_stolen?<|end|><|start|>assistant<|channel|>final<|message|>card_lost<|return|>", "card_lost", ""},
		{"channels that the prompt has begun", "analysis<|message|>card_stolen<|end|><|start|>assistant<|channel|>final<|message|>card_lost", "card_lost", ""},
		{"channels without tokens", "analysisThe user... card_stolen?assistantfinalcard_lost", "card_lost", ""},
		{"a tool's channel", `<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=functions.sort <|constrain|>json<|message|>{"label": "card_lost"}<|call|>`, "card_lost", "from JSON"},
		{"a message to the user goes first", `<|start|>assistant<|channel|>final<|message|>card_lost<|end|><|start|>assistant<|channel|>commentary to=functions.sort<|message|>{"label": "A"}<|call|>`, "card_lost", ""},

		{"JSON", `{"label": "card_lost"}`, "card_lost", "from JSON"},
		{"JSON in a fence", "```json\n{\n  \"label\": \"card_lost\"\n}\n```", "card_lost", "from JSON"},
		{"another case of the property", `{"Label": "Card lost"}`, "card_lost", "from JSON, from another property, case and separators"},
		{"another property", `{"confidence": 0.9, "intent": "card_lost"}`, "card_lost", "from JSON, from another property"},
		{"a list of one", `["card_lost"]`, "card_lost", "from JSON, from a list"},
		{"a tool call", `{"name": "sort", "arguments": "{\"label\": \"card_lost\"}"}`, "card_lost", "from JSON, from a tool call"},
		{"a tool call with an object", "<tool_call>\n{\"name\": \"sort\", \"arguments\": {\"label\": \"card_lost\"}}\n</tool_call>", "card_lost", "from JSON"},
		{"none", "**None of these**", "", "without markup, case and separators"},
	}
	p := sdk.Prompt{Text: "?", Labels: intents, None: "none_of_these"}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got, want := answer.Read(test.text, p, answer.Options{}), (sdk.Answer{Label: test.want, Weight: 1, Reading: test.reading}); got != want {
				t.Errorf("%q: got %+v, want %+v", test.text, got, want)
			}
		})
	}
}

// TestPlainRefuses has texts that could be taken for a label and must not be.
func TestPlainRefuses(t *testing.T) {
	p := sdk.Prompt{Text: "?", Labels: intents, None: "none_of_these"}
	object := p
	object.Fields = []string{"reasoning", "label"}
	tests := []struct {
		name, text string
		prompt     sdk.Prompt
	}{
		{"two labels", "card_lost, card_stolen", p},
		{"two labels with a slash", "card_lost/card_stolen", p},
		{"two lines", "card_lost\ncard_stolen", p},
		{"two bullets", "- card_lost\n- card_stolen", p},
		{"a fence of two", "```\ncard_lost\ncard_stolen\n```", p},
		{"two bold ones", "**card_lost** / **card_stolen**", p},
		{"a hedge", "card_lost or card_stolen", p},
		{"a hedge behind a prefix", "Label: card_lost, maybe card_stolen", p},
		{"another label behind it", "Label: card_lost\nIt may be card stolen, too.", p},
		{"another label before it", "It sounds like card_stolen. Label: card_lost", p},
		{"two prefixes", "First choice: card_lost\nSecond choice: card_stolen", p},
		{"a comparison", "card_stolen -> card_lost", p},
		{"denied", "not card_lost", p},
		{"denied in a sentence", "The label is not card_lost.", p},
		{"denied before a colon", "This is not: card_lost", p},
		{"denied in short", "It isn't: card_lost", p},
		{"anything but", "Anything but: card_lost", p},
		{"denied in Spanish", "La etiqueta no es card_lost", p},
		{"denied in German", "Keine Antwort: card_lost", p},
		{"denied in Italian", "Non è card_lost", p},
		{"denied in Chinese", "标签不是：card_lost", p},
		{"unequal", "label != card_lost", p},
		{"struck out", "~~card_lost~~", p},
		{"denied by an element", "<not>card_lost</not>", p},
		{"denied by a property", `{"not": "card_lost"}`, p},
		{"a Cyrillic letter", "c\u0430rd_lost", p},
		{"a Cyrillic letter, bold", "**c\u0430rd_lost**", p},
		{"a Greek letter", "\u0391", p}, // not A
		{"superscript", "¹", p},
		{"a letter of mathematics", "\U0001d400", p},
		{"a longer word", "card_losts", p},
		{"a longer word behind a prefix", "Label: card_lost_2", p},
		{"a shorter one", "card", p},
		{"a wildcard", "card_lost*", p},
		{"a question", "card_lost?", p},
		{"a question behind a prefix", "Is the label: card_lost?", p},
		{"points of suspension", "card_lost...", p},
		{"a sentence with the label in it", "The user's card_lost case needs help", p},
		{"a number with a sign", "-1", p},
		{"a range", "1-2", p},
		{"a number as a list", "2. 1", p},
		{"a grade with a sign", "A-", p},
		{"more than", "score >= 1", p},
		{"without an end", "\"card_lost", p},
		{"thoughts alone", "<thinking>card_lost</thinking>", p},
		{"thoughts without an end", "<reasoning>it is\ncard_lost", p},
		{"a channel of thoughts", "<|channel|>analysis<|message|>card_lost", p},
		{"empty", " \n", p},
		{"marks alone", "****", p},
		{"a fence alone", "```", p},
		{"a list of two", `["card_lost", "card_stolen"]`, p},
		{"two properties", `{"first": "card_lost", "second": "card_stolen"}`, p},
		{"a list of two in a property", `{"label": ["card_lost", "card_stolen"]}`, object},
		{"labels as properties", `{"card_lost": "greeting", "A": 1}`, p},
		{"a label in the reasons", `{"reasoning": "card_lost"`, object},
		{"a text for an object", "card_lost or card_stolen", object},
		{"a sentence for an object", "I think of card_lost", object},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := answer.Read(test.text, test.prompt, answer.Options{})
			for _, label := range append(intents, "") {
				if got.Label == label && got.Reason == "" || got.Reading != "" {
					t.Fatalf("%q was read as %+v", test.text, got)
				}
			}
		})
	}
}

// TestExact reads nothing but labels as they are written.
func TestExact(t *testing.T) {
	p := sdk.Prompt{Text: "?", Labels: intents}
	for text, want := range map[string]string{
		" card_lost\nmore": "card_lost", "card_lost\ncard_stolen": "card_lost", "**card_lost**": "**card_lost**", "Card_lost": "Card_lost",
		"Label: card_lost": "Label: card_lost", `{"label": "card_lost"}`: `{"label": "card_lost"}`, "```\ncard_lost\n```": "```",
		"<think>a</think>card_lost": "card_lost",
	} {
		if got := answer.Read(text, p, answer.Options{Exact: true}); got != (sdk.Answer{Label: want, Weight: 1}) {
			t.Errorf("%q: got %+v, want %q", text, got, want)
		}
	}
}

// TestReasons keeps the other properties of an object.
func TestReasons(t *testing.T) {
	object := sdk.Prompt{Labels: intents, Fields: []string{"reasoning", "label"}}
	list := sdk.Prompt{Labels: intents, Fields: []string{"reasoning", "labels"}}
	for _, test := range []struct {
		text, want string
		prompt     sdk.Prompt
	}{
		{`{"reasoning": " a card is gone ", "label": "card_lost"}`, "a card is gone", object},
		{`{"reasoning": "a", "sure": true, "why": "b", "label": "card_lost"}`, "reasoning: a\nwhy: b", object},
		{`{"label": "card_lost"}`, "", object},
		{`{"reasoning": "both fit", "labels": ["card_lost", "A"]}`, "both fit", list},
		{`{"reasoning": "none fits", "labels": []}`, "none fits", list},
		{`{"reasoning": "` + strings.Repeat("é", 4000) + `", "label": "card_lost"}`, strings.Repeat("é", 2048) + "…", object},
	} {
		all := answer.ReadAll(test.text, test.prompt, answer.Options{Reasons: true})
		if all[0].Explanation != test.want || len(all) > 1 && all[1].Explanation != "" {
			t.Errorf("%.80s: got %+v", test.text, all)
		}
		if got := answer.Read(test.text, test.prompt, answer.Options{}); got.Explanation != "" {
			t.Errorf("%.80s: kept without being asked for: %+v", test.text, got)
		}
	}
}

// TestSpan finds where labels stand.
func TestSpan(t *testing.T) {
	line := sdk.Prompt{Labels: intents}
	object := sdk.Prompt{Labels: intents, Fields: []string{"label"}}
	for _, test := range []struct {
		text, want string
		prompt     sdk.Prompt
	}{
		{"\n card_lost\nText", "card_lost", line},
		{"**card_lost**.", "card_lost", line},
		{"Label: \"Card lost\".", "Card lost", line},
		{"<thinking>card_lost</thinking> `A`", "A", line},
		{"```\ncard_lost\n```", "card_lost", line},
		{"<|channel|>final<|message|>card_lost<|return|>", "card_lost", line},
		{`{"label": "card_lost"}`, "card_lost", line},
		{"weather \nmore", "weather", line},
		{`{"reasoning": "card_lost", "label" :  "a\"b"}`, `a\"b`, object},
		{`{"label": 12}`, "12", object},
		{`{"a": "{\"label\": \"A\"}"}`, `"{\"label\": \"A\"}"`, object},
		{"{}", "", object},
		{`{"labels": ["A"]}`, "", sdk.Prompt{Labels: intents, Fields: []string{"labels"}}},
		{"a [1]", "", sdk.Prompt{Passages: []string{"x"}}},
	} {
		if from, to := answer.Span(test.text, test.prompt, answer.Options{}); test.text[from:to] != test.want {
			t.Errorf("%q: got %q, want %q", test.text, test.text[from:to], test.want)
		}
	}
}

// A label of another script is another label, whatever it looks like.
func TestNoLetterLeavesItsScript(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads many letters")
	}
	scripts := map[rune]*unicode.RangeTable{}
	for name, table := range unicode.Scripts {
		if name == "Common" || name == "Inherited" {
			continue
		}
		for _, r := range table.R16 {
			for c := rune(r.Lo); c <= rune(r.Hi); c += rune(r.Stride) {
				scripts[c] = table
			}
		}
		for _, r := range table.R32 {
			for c := rune(r.Lo); c <= rune(r.Hi); c += rune(r.Stride) {
				scripts[c] = table
			}
		}
	}
	latin := strings.Split("abcdefghijklmnopqrstuvwxyz", "")
	for c := range scripts {
		if c < 0x80 || c > 0x3000 && c < 0xf900 || !unicode.IsLetter(c) {
			continue
		}
		if got := answer.Read(string(c), sdk.Prompt{Labels: latin}, answer.Options{}); got.Reading != "" && scripts[c] != unicode.Latin {
			t.Errorf("%q (%U) was read as %q", c, c, got.Label)
		}
	}
}
