package sample

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
	"github.com/racflow/racflow/sdk/sdktest/must"
	"github.com/racflow/racflow/sdk/support"
)

// TestAsksAgain shows a model its errors and leaves the first question unchanged.
func TestAsksAgain(t *testing.T) {
	f := openedOpenAI(t, 1, modelserver.Options{Answer: func(a modelserver.Ask, _ int) string {
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
		{"nothing that was written", sdk.Prompt{Labels: labels}, []sdk.Rejection{{Text: " \n", Reason: support.NoAnswer}}, nil},
		{"a line", sdk.Prompt{Labels: labels, None: "none"}, one,
			[]string{"x", "This answer cannot be used: it names several labels.\nAnswer again with a label and nothing else: one of these, written exactly so: \"a\",\"b\". If there is none that fits, it is \"none\"."}},
		{"a list", sdk.Prompt{Labels: labels, Fields: []string{"labels"}}, one,
			[]string{"x", "This answer cannot be used: it names several labels.\nAnswer again with one JSON object and nothing else. Each element of its list \"labels\" is one of these, written exactly so: \"a\",\"b\"."}},
		{"more labels than are listed", sdk.Prompt{Labels: many}, one,
			[]string{"x", "This answer cannot be used: it names several labels.\nAnswer again with a label and nothing else: one of the allowed labels, written exactly as it was given."}},
		{"any label", sdk.Prompt{}, one, []string{"x", "This answer cannot be used: it names several labels.\nAnswer again with a label and nothing else: a label."}},
		{"a set", sdk.Prompt{Labels: labels}, one, []string{"x", "This answer cannot be used: it names several labels.\nAnswer again with labels and nothing else, \"; \" between them. Each is one of these, written exactly so: \"a\",\"b\"."}},
		{"cut off", sdk.Prompt{}, []sdk.Rejection{{Text: "x", Reason: support.CutOff}},
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
			for i, m := range again(&question{prompt: test.prompt, many: test.name == "a set"}, test.rejected) {
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

// TestForecastOfChoices: a forecast counts the requests that a server needs for six answers, and the prompt of each.
func TestForecastOfChoices(t *testing.T) {
	nameless := modelserver.Options{Refuse: func(a modelserver.Ask) bool { return a.N > 4 }}
	for name, test := range map[string]struct {
		server modelserver.Options
		kept   string // stored profile; empty: a probe finds one
		before int    // forecast requests
		after  int    // forecast after an item; the next item takes as many
	}{
		"any":                        {modelserver.Options{}, "", 1, 1},
		"four":                       {modelserver.Options{MaxN: 4}, "", 2, 2},
		"three":                      {modelserver.Options{MaxN: 3}, "", 3, 3},
		"one":                        {modelserver.Options{MaxN: 1}, "", 6, 6},
		"an old profile":             {modelserver.Options{MaxN: 4}, `{"thinking": "no", "n": "yes"}`, 1, 2},
		"an old profile, namelessly": {nameless, `{"thinking": "no", "n": "yes"}`, 1, 2},
		"an old profile of one":      {modelserver.Options{MaxN: 1}, `{"thinking": "no", "n": "no"}`, 6, 6},
	} {
		t.Run(name, func(t *testing.T) {
			f := openedOpenAI(t, 6, test.server, "")
			if test.kept != "" {
				must.Do(t, f.host.KeepProfile(t.Context(), f.Address(), "tiny", json.RawMessage(test.kept)))
			} else {
				_, err := f.Models()[0].Probe(t.Context())
				must.Do(t, err)
			}
			for i, want := range []int{test.before, test.after} {
				f.reopen(t, 6, "")
				item := texts(strings.Repeat("Where is the card that I ordered? ", 40+i))
				said, err := f.Forecast(item)
				must.Do(t, err)
				calls, spent := f.server.Calls(), f.host.Spent(t)
				if _, err := f.one(t, item); err != nil {
					t.Fatal(err)
				}
				calls = f.server.Calls() - calls
				exact := i == 1 || test.before == test.after
				if said.Requests != want || exact && calls != want {
					t.Errorf("item %d: %+v, want %d requests; %d calls", i, said, want, calls)
				}
				likely, took := float64(said.Likely.InputTokens), float64(f.host.Spent(t).InputTokens-spent.InputTokens)
				if exact && math.Abs(likely/took-1) > .05 {
					t.Errorf("item %d: %v tokens in were likely, and it took %v", i, likely, took)
				}
			}
		})
	}
}

// The upper bound of another try is forecast before the rejected answers are known.
func TestForecastOfFurtherTries(t *testing.T) {
	f := openedOpenAI(t, 1, modelserver.Options{}, "")
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

// TestReasons keeps the model's text beside its label, if the file says so.
func TestReasons(t *testing.T) {
	p := sdk.Prompt{Text: "p", Labels: []string{"pin"}, Fields: []string{"reasoning", "label"}}
	o := modelserver.Options{Answer: func(modelserver.Ask, int) string { return `{"reasoning": "a code", "label": "Pin"}` }}
	f := openedOpenAI(t, 1, o, `, "reasons": true, "structured": "off"`)
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
		{"JSON that is cut in the label", `{"label": "pi{"label": "pi`, fault(modelserver.Length), plain, "", "(the answer was cut off; raise max_tokens)"},
		{"JSON that is cut behind the label", `{"label": "pin", "why": "a{"label": "pin", "why": "a`, fault(modelserver.Length), object, "", "pin"},
		{"whole before the cut", "pin\nText: " + strings.Repeat("x", 9), fault(modelserver.Length), plain, "", "pin"},
		{"just whole", "pinpin", fault(modelserver.Length), plain, "", "pin"},
		{"any text may be cut", "ab", fault(modelserver.Length), free, "", "a"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := openedOpenAI(t, 1, modelserver.Options{Answer: func(modelserver.Ask, int) string { return test.text }, Faults: test.faults}, test.arguments)
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
		f := openedOpenAI(t, 1, o, test.arguments)
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
		if got, _ := likely(test.tokens, prompt(test.object), support.AnswerOptions{}); math.Abs(got-test.want) > 1e-9 || math.IsNaN(got) != math.IsNaN(test.want) {
			t.Errorf("likely(%v) = %v, want %v", test.tokens, got, test.want)
		}
	}
}

// Alternatives that the model might have written instead of its answer are votes for other labels.
func TestLikelyOthers(t *testing.T) {
	token := func(text string, p float64, others ...any) dialect.Token {
		all := []dialect.Token{{Text: text, Log: math.Log(p)}}
		for i := 0; i < len(others); i += 2 {
			all = append(all, dialect.Token{Text: others[i].(string), Log: math.Log(others[i+1].(float64))})
		}
		return dialect.Token{Text: text, Log: math.Log(p), Others: all}
	}
	labels := []string{"card lost", "card lost abroad", "car", "pin", "pin \"x\""}
	for name, test := range map[string]struct {
		tokens []dialect.Token
		fields []string
		own    float64
		others map[string]float64
	}{
		"a line": {
			[]dialect.Token{token("card", .5, "pin", .2, "car", .1, "stray", .1), token(" lost", .8, " kept", .1)}, nil, .4 + .1/3, map[string]float64{"pin": .1, "pin \"x\"": .1, "car": .1 / 3, "card lost abroad": .1 / 3},
		},
		"an object": {
			[]dialect.Token{token(`{"label": "c`, .5, `{"label": "p`, .4, "{", .1), token("ard lost", .8, `ar"`, .1), token(`"}`, .6, " abroad", .3)}, []string{"label"}, .28,
			map[string]float64{"pin": .2, "pin \"x\"": .2, "car": .05, "card lost abroad": .12},
		},
		"escaped": {[]dialect.Token{token(`{"label": "pin`, 1), token(` \"x`, .5, `"`, .4, ` \`, .06), token(`\""}`, 1)}, []string{"label"}, .56, map[string]float64{"pin": .4}},
		"dust":    {[]dialect.Token{token("pin", .9, "car", .0009)}, nil, .9, nil},
	} {
		own, others := likely(test.tokens, sdk.Prompt{Labels: labels, Fields: test.fields}, support.AnswerOptions{})
		if diff := cmp.Diff(test.others, others, cmpopts.EquateApprox(0, 1e-9)); math.Abs(own-test.own) > 1e-9 || diff != "" {
			t.Errorf("%s: %v, want %v; others (-want +got):\n%s", name, own, test.own, diff)
		}
	}
}

// If further levels follow, only the given answer counts.
func TestOthersInLevels(t *testing.T) {
	voter, pieces := &openAIVoter{}, []dialect.Token{{Text: "pin", Log: -1, Others: []dialect.Token{{Text: "card", Log: -2}}}}
	for _, below := range []*tree{nil, {}} {
		r := reply{Choice: dialect.Choice{Tokens: pieces}}
		voter.weigh(&question{prompt: sdk.Prompt{Labels: []string{"card", "pin"}}, tree: below}, &r, dialect.Request{Logprobs: true})
		if r.Probability != math.Exp(-1) || (len(r.Others) == 1) != (below == nil) {
			t.Errorf("levels %t: probability %v, others %v", below != nil, r.Probability, r.Others)
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

// FuzzProbability cuts texts into tokens at random: the results are probabilities.
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
		if p, _ := likely(tokens, p, support.AnswerOptions{}); !math.IsNaN(p) && (p < least || p > 1) {
			t.Errorf("%q gives %v", text, p)
		}
	})
}
