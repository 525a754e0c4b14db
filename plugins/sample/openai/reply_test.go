package openai

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/answer"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

func TestReading(t *testing.T) {
	plain := sdk.Prompt{Text: "p", Labels: []string{"card_lost", "pin"}, None: "none"}
	object := sdk.Prompt{Text: "p", Labels: plain.Labels, None: "none", Fields: []string{"reasoning", "label"}}
	free := sdk.Prompt{Text: "p"}
	fault := func(k modelserver.Kind) []modelserver.Fault { return []modelserver.Fault{{Kind: k, Share: 1}} }
	tests := []struct {
		name      string
		text      string
		faults    []modelserver.Fault
		prompt    sdk.Prompt
		arguments string
		want      string // a label; a reason in brackets
	}{
		{"a label", " card_lost\nText: on", nil, plain, "", "card_lost"},
		{"off the list", "weather", nil, plain, "", "weather"},
		{"as people would read it", "**Card Lost**.", nil, plain, "", "card_lost"},
		{"letter by letter", "Card Lost", nil, plain, `, "read": "exact"`, "Card Lost"},
		{"the nearest", "my card is lost", nil, plain, `, "nearest": 0.5`, "card_lost"},
		{"none", "none", nil, plain, "", ""},
		{"nothing", " \n", nil, plain, "", "(the model wrote nothing)"},
		{"JSON", "pin", nil, object, "", "pin"},
		{"no JSON", "{pin", nil, object, "", `(not a JSON object with "label")`},
		{"a refusal", "pin", fault(modelserver.Refusal), plain, "", "(the model refused: I can't help with that.)"},
		{"a filter", "pin", fault(modelserver.Filter), plain, "", "(the server's filter took the answer)"},
		{"a label that is cut", "card_lost", fault(modelserver.Length), plain, "", "(the answer was cut off; raise max_tokens)"},
		{"what is read at the cut", "Label: pinLabel: pin", fault(modelserver.Length), plain, "", "(the answer was cut off; raise max_tokens)"},
		{"what is read before the cut", "Label: pin\nLabel: pin\n", fault(modelserver.Length), plain, "", "pin"},
		{"JSON that is cut", "pin", fault(modelserver.Length), object, "", "(the answer was cut off; raise max_tokens)"},
		{"whole before the cut", "pin\nText: " + strings.Repeat("x", 9), fault(modelserver.Length), plain, "", "pin"},
		{"just whole", "pinpin", fault(modelserver.Length), plain, "", "pin"},
		{"any text may be cut", "ab", fault(modelserver.Length), free, "", "a"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := opened(t, 1, modelserver.Options{Answer: func(modelserver.Ask, int) string { return test.text }, Faults: test.faults}, test.arguments)
			samples, err := f.one(t, sdk.Item{Prompts: []sdk.Prompt{test.prompt}})
			if err != nil || !slices.Equal(labels(samples), []string{test.want}) {
				t.Errorf("answers %+v, error %v, want %s", samples, err, test.want)
			}
			if got := samples[0].Answers[0]; got.Weight != 1 || got.Reason != "" && got.Label != "" {
				t.Errorf("answer %+v", got)
			}
		})
	}
}

func TestAnswersWeighTheirProbability(t *testing.T) {
	for _, test := range []struct {
		arguments, text string
		prompt          sdk.Prompt
		want            float64
	}{
		{`, "logprobs": true`, "card_lost\nmore and more", sdk.Prompt{Text: "p"}, .9 * .9 * .9}, // card _los t\nmo
		{`, "logprobs": true, "endpoint": "completions"`, "card_lost", sdk.Prompt{Text: "p"}, .9 * .9 * .9},
		{`, "logprobs": true`, "pin", sdk.Prompt{Text: "p", Fields: []string{"label"}}, .9 * .9}, // {"la bel" : "p in"}
		{"", "pin", sdk.Prompt{Text: "p"}, 1},
		{`, "logprobs": true, "model": "that gives none"`, "pin", sdk.Prompt{Text: "p"}, 1},
	} {
		o := modelserver.Options{Answer: func(modelserver.Ask, int) string { return test.text }}
		if strings.Contains(test.arguments, "gives none") {
			o = o.With("refuses-logprobs")
		}
		f := opened(t, 1, o, test.arguments)
		samples, err := f.one(t, sdk.Item{Prompts: []sdk.Prompt{test.prompt}})
		must.Do(t, err)
		if got := samples[0].Answers[0].Weight; math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%s %q: weight %v, want %v", test.arguments, test.text, got, test.want)
		}
	}
}

func TestProbability(t *testing.T) {
	half := math.Log(.5)
	tokens := func(all ...string) (list []dialect.Token) {
		for _, text := range all {
			list = append(list, dialect.Token{Text: text, Log: half})
		}
		return list
	}
	labels := []string{"card_lost", "pin"}
	tests := []struct {
		tokens []dialect.Token
		object bool
		want   float64
	}{
		{tokens("**", "card", "_lost", "**"), false, .25},
		{tokens("Label", ":", " ", "Card", " lost", "."), false, .25},
		{tokens("<thinking>", "pin", "</thinking>", "`", "card", "_", "lost", "`"), false, .125},
		{tokens(`{"intent"`, `: "`, "card", "_lost", `"}`), true, .25},
		{tokens("card", "_lost"), false, .25},
		{tokens("\n ", "card", "_lost", "\n", "Text"), false, .25},
		{tokens("<think>", "hm", "</think>", "\n", "card"), false, .5},
		{tokens(`{"why": "`, `x`, `", "label": "`, `card`, `_lost`, `"`, `}`), true, .25},
		{tokens(`{"label": "a\"b`, `c"`, "}"), true, .25},
		{tokens(`{"no": "x"}`), true, math.NaN()},
		{tokens(" ", "\n"), false, math.NaN()},
		{[]dialect.Token{{Text: "a", Log: -900}}, false, least},
		{[]dialect.Token{{Text: "a", Log: 1}}, false, math.NaN()},
		{[]dialect.Token{{Text: "a", Log: math.NaN()}}, false, math.NaN()},
	}
	prompt := func(object bool) (p sdk.Prompt) {
		if p.Labels = labels; object {
			p.Fields = []string{"why", "label"}
		}
		return p
	}
	for _, test := range tests {
		if got := probability(test.tokens, prompt(test.object), answer.Options{}); math.Abs(got-test.want) > 1e-9 || math.IsNaN(got) != math.IsNaN(test.want) {
			t.Errorf("probability(%v) = %v, want %v", test.tokens, got, test.want)
		}
	}
}

func TestGrammar(t *testing.T) {
	want := `root ::= "{\"why\": " string ", \"label\": " label "}"
label ::= "\"a \\\"b\\\"\"" | "\"<é>\""
string ::= "\"" ([^"\\\x00-\x1F\x7F] | "\\" ["\\/bfnrt])* "\""
`
	if got := grammar([]string{"why", "label"}, []string{`a "b"`, "<é>"}); got != want {
		t.Errorf("grammar\n%swant\n%s", got, want)
	}
	want = `root ::= "{\"label\": " string "}"
`
	if got := grammar([]string{"label"}, nil); !strings.HasPrefix(got, want) {
		t.Errorf("grammar\n%swant\n%s", got, want)
	}
}

// FuzzProbability cuts texts into tokens anyhow: a probability is one.
func FuzzProbability(f *testing.F) {
	f.Add("card_lost\nmore", 3, false)
	f.Add(`{"label": "a\"b"}`, 2, true)
	f.Add("<think>x</think> card", 1, false)
	f.Fuzz(func(t *testing.T, text string, size int, object bool) {
		size = max(1, min(size, 64))
		p := sdk.Prompt{Labels: []string{"card_lost"}}
		if object {
			p.Fields = []string{"label"}
		}
		var tokens []dialect.Token
		for piece := range slices.Chunk([]byte(text), size) {
			tokens = append(tokens, dialect.Token{Text: string(piece), Log: math.Log(.9)})
		}
		if p := probability(tokens, p, answer.Options{}); !math.IsNaN(p) && (p < least || p > 1) {
			t.Errorf("%q gives %v", text, p)
		}
	})
}
