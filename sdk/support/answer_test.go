package support_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/width"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
	"github.com/racflow/racflow/sdk/support"
)

var labels = []string{"card_lost", "Pin Change", "pin-reset", "PersonalEvent", "a b", "a_b", "3"}

func TestRead(t *testing.T) {
	plain := sdk.Prompt{Text: "?", Labels: labels}
	free := sdk.Prompt{Text: "?"}
	none := sdk.Prompt{Text: "?", Labels: labels, None: "none of these"}
	object := sdk.Prompt{Labels: labels, Fields: []string{"reasoning", "label"}, None: "none of these"}
	exact, normal, near := support.AnswerOptions{Exact: true}, support.AnswerOptions{}, support.AnswerOptions{Nearest: .5}
	tests := []struct {
		name    string
		text    string
		prompt  sdk.Prompt
		options support.AnswerOptions
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
		{name: "no list, nothing to map to", text: "Card Lost", prompt: free, options: support.AnswerOptions{Nearest: .1}, want: "Card Lost"},
		{name: "the nearest", text: "The customer's card is lost", prompt: plain, options: near, want: "card_lost", reading: "nearest"},
		{name: "not near enough", text: "The customer's card is lost", prompt: plain, options: support.AnswerOptions{Nearest: .6}, want: "The customer's card is lost"},
		{name: "as near to two", text: "pin", prompt: plain, options: near, want: "pin"},
		{name: "near to none", text: "weather", prompt: plain, options: support.AnswerOptions{Nearest: .01}, want: "weather"},
		{name: "equal goes before near", text: "pin reset", prompt: plain, options: support.AnswerOptions{Nearest: .1}, want: "pin-reset", reading: "separators"},
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
			got := support.ReadAnswer(test.text, test.prompt, test.options)
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
		options    support.AnswerOptions
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
		{name: "no list", text: `{"labels": "card_lost"}`, options: support.AnswerOptions{Exact: true}, reason: `"labels" in the JSON object is not a list`},
		{name: "null", text: `{"labels": null}`, reason: `"labels" in the JSON object is not a list`},
		{name: "a list in it", text: `{"labels": ["card_lost", ["3"]]}`, reason: `"labels" in the JSON object is not a text`},
		{name: "nothing in it", text: `{"labels": ["card_lost", ""]}`, reason: `"labels" in the JSON object is empty`},
		{name: "a text for a list", text: `{"labels": "card_lost"}`, want: []string{"card_lost"}, readings: []string{"without a list"}},
		{name: "a label for a list", text: `{"label": "card_lost"}`, want: []string{"card_lost"}, readings: []string{"from another property, without a list"}},
		{name: "a list alone", text: "```json\n[\"card_lost\", \"Pin Reset\"]\n```", want: []string{"card_lost", "pin-reset"}, readings: []string{"from a list alone", "from a list alone, case and separators"}},
		{name: "a list off the list", text: `["card_lost", "weather"]`, reason: `not a JSON object with "labels"`},
		{name: "one label", text: `{"label": "card_lost"}`, options: support.AnswerOptions{Exact: true}, reason: `not a JSON object with "labels"`},
		{name: "nothing", text: "<think>hm</think>", reason: "the model wrote nothing"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := support.ReadAnswers(test.text, p, test.options)
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
			if first := support.ReadAnswer(test.text, p, test.options); first != want[0] {
				t.Errorf("the first is %+v, want %+v", first, want[0])
			}
		})
	}
}

// All items of a batch share the prompt's list.
func TestReadLeavesThePromptAlone(t *testing.T) {
	list := append(make([]string, 0, 8), "a", "b")
	support.ReadAnswer("x", sdk.Prompt{Labels: list, None: "none"}, support.AnswerOptions{Nearest: .5})
	if got := list[:3]; got[2] != "" {
		t.Errorf("the list has been written to: %q", got)
	}
}

func TestReadTakesLinearTime(t *testing.T) {
	for _, parts := range [][3]string{ // the middle part is repeated
		{"", `{"a":`, ""}, {"", `{"a":"{`, ""}, {"", `{"a": "{}"} `, ""}, {"", `"`, ""}, {"", ": ", ""}, {"", "a:\n", ""},
		{"", "<a>", ""}, {"", "*a ", ""}, {"", "<think>", ""}, {"", "</think>", ""}, {"", "<|message|>", ""},
		{"", "- x\n", ""}, {"", "```\n", ""}, {"", "[", ""}, {"", "_", ""}, {"Label: card_lost ", "a ", ""}, {"", ". ", ""},
		{"", "a ", ". Label: card_lost"},
	} {
		for _, fields := range [][]string{nil, {"label"}, {"labels"}} {
			t.Run(fmt.Sprintf("%s %s", parts[1], fields), func(t *testing.T) {
				must.Linear(t, 100, func(n int) {
					text := parts[0] + strings.Repeat(parts[1], n) + parts[2]
					if got := support.ReadAnswer(text, sdk.Prompt{Labels: labels, Fields: fields}, support.AnswerOptions{}); got.Reading != "" && got.Label != "card_lost" {
						t.Errorf("%.20q: got %.100v", text, got)
					}
				})
			})
		}
	}
}

// stands reports whether a text contains a label, if only letters and digits count.
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

// isRead checks the result for any text: one of the labels, which the text contains.
func isRead(t *testing.T, text string, object bool) {
	p := sdk.Prompt{Labels: labels, None: "none"}
	if object {
		p.Fields = []string{"label"}
	}
	for _, a := range support.ReadAnswers(text, p, support.AnswerOptions{}) {
		if a.Reading != "" && (a.Label != "" && !slices.Contains(labels, a.Label) || !stands(text, cmp.Or(a.Label, p.None))) {
			t.Errorf("%q gave %+v", text, a)
		}
	}
	from, to := support.AnswerSpan(text, p, support.AnswerOptions{})
	if from < 0 || from > to || to > len(text) {
		t.Errorf("%q: the label stands from %d to %d", text, from, to)
	}
	got := support.ReadAnswer(text, p, support.AnswerOptions{Nearest: .3})
	if got.Weight != 1 || strings.ContainsAny(got.Label, "\n") || got.Label != "" && got.Reason != "" {
		t.Errorf("%q gave %+v", text, got)
	}
}

// TestReadOfPieces combines pieces that models write, in any order.
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

var intents = []string{"card_lost", "card_stolen", "invoice_request", "Café au lait", "rating", "A", "A+", "1", "12", "greeting"}

// TestPlainRead reads what models write instead of a label, as people would.
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
			if got, want := support.ReadAnswer(test.text, p, support.AnswerOptions{}), (sdk.Answer{Label: test.want, Weight: 1, Reading: test.reading}); got != want {
				t.Errorf("%q: got %+v, want %+v", test.text, got, want)
			}
		})
	}
}

// TestPlainRefuses has texts that look like a label and must not be read as one.
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
			got := support.ReadAnswer(test.text, test.prompt, support.AnswerOptions{})
			for _, label := range append(intents, "") {
				if got.Label == label && got.Reason == "" || got.Reading != "" {
					t.Fatalf("%q was read as %+v", test.text, got)
				}
			}
		})
	}
}

// TestExact reads only labels as they are written.
func TestExact(t *testing.T) {
	p := sdk.Prompt{Text: "?", Labels: intents}
	for text, want := range map[string]string{
		" card_lost\nmore": "card_lost", "card_lost\ncard_stolen": "card_lost", "**card_lost**": "**card_lost**", "Card_lost": "Card_lost",
		"Label: card_lost": "Label: card_lost", `{"label": "card_lost"}`: `{"label": "card_lost"}`, "```\ncard_lost\n```": "```",
		"<think>a</think>card_lost": "card_lost",
	} {
		if got := support.ReadAnswer(text, p, support.AnswerOptions{Exact: true}); got != (sdk.Answer{Label: want, Weight: 1}) {
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
		all := support.ReadAnswers(test.text, test.prompt, support.AnswerOptions{Reasons: true})
		if all[0].Explanation != test.want || len(all) > 1 && all[1].Explanation != "" {
			t.Errorf("%.80s: got %+v", test.text, all)
		}
		if got := support.ReadAnswer(test.text, test.prompt, support.AnswerOptions{}); got.Explanation != "" {
			t.Errorf("%.80s: kept without being asked for: %+v", test.text, got)
		}
	}
}

// TestSpan finds the positions of labels.
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
		if from, to := support.AnswerSpan(test.text, test.prompt, support.AnswerOptions{}); test.text[from:to] != test.want {
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
		if got := support.ReadAnswer(string(c), sdk.Prompt{Labels: latin}, support.AnswerOptions{}); got.Reading != "" && scripts[c] != unicode.Latin {
			t.Errorf("%q (%U) was read as %q", c, c, got.Label)
		}
	}
}

// TestSignsOfLabels: signs tell labels apart, even if only one of two labels is allowed. An exact
// match comes first.
func TestSignsOfLabels(t *testing.T) {
	for _, c := range []struct {
		text, want string
		labels     []string
	}{
		{"A-", "A-", []string{"A", "A-", "A+"}}, {"**A-**", "A-", []string{"A", "A-"}}, {"A-", "A-", []string{"A", "B"}}, {"a-.", "A-", []string{"A", "A-"}},
		{"c#", "c#", []string{"c", "c#", "c++"}}, {"C++", "c++", []string{"c", "c#", "c++"}}, {`"C#"`, "c#", []string{"c", "c#"}}, {"c#", "c#", []string{"c"}}, {".NET", ".net", []string{"net", ".net"}}, {"net.", "net", []string{"net", ".net"}},
		{"-1", "-1", []string{"-1", "0", "1"}}, {"- 1", "-1", []string{"-1", "0"}}, {"\u22121", "-1", []string{"-1", "1"}}, {"1.1", "1.1", []string{"11", "1.1"}}, {"1.1.", "1.1", []string{"11", "1.1"}}, {"50%", "50 %", []string{"50", "50 %"}},
		{"ru\u0308ckgabe", "rückgabe", []string{"Rückgabe", "rückgabe"}}, {"Card\u00a0lost\u200b", "card_lost", []string{"card_lost", "card"}},
	} {
		for _, text := range []string{c.text, `{"label": ` + strconv.Quote(c.text) + "}"} {
			p := sdk.Prompt{Text: "?", Labels: c.labels}
			if text != c.text {
				p.Fields = []string{"label"}
			}
			if got := support.ReadAnswer(text, p, support.AnswerOptions{}); got.Label != c.want || got.Reason != "" {
				t.Errorf("%s of %q: got %+v, want %q", text, c.labels, got, c.want)
			}
		}
	}
}
