package decide

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// form is one of the two request forms.
type form struct {
	read  func([]byte) (Request, error)
	write func(string, Request, []Answer, sdk.Usage) any
}

var (
	ofTypeSafe = form{ReadSystemOne, WriteSystemOne}
	ofOpenAI   = form{ReadDecisions, WriteDecisions}
)

// TestForms: a request is read, and its answers have the options unchanged and in order.
func TestForms(t *testing.T) {
	answers := []Answer{{P: []float64{.25}}, {P: []float64{.75, .25}, Confidence: .5, Described: true}, {P: []float64{.5, 0, .5}, Best: 2, Confidence: .25}}
	for name, test := range map[string]struct {
		form
		body, want string
	}{
		"TypeSafe's": {
			ofTypeSafe,
			`{"model": "m", "state": "t", "seed": 7, "questions": {"z": {"type": "noul", "instructions": {"label": "refund"}}, "é <b>": {"type": "choice", "criteria": {"y": null, "x": {"owns": ["a", "b"]}}}, "c": {"type": "score", "criteria": ["low", {"label": "mid", "more": 1}, "high"]}}}`,
			`{"model":"m","answers":{"z":{"type":"noul","noul":0.25},"é <b>":{"type":"choice","choice":"y","probabilities":{"y":0.75,"x":0.25},"confidence":0.5,"x_basis":"descriptions"},` +
				`"c":{"type":"score","score":1,"legend":{"0":"low","1":{"label":"mid","more":1},"2":"high"},"probabilities":{"0":0.5,"1":0,"2":0.5},"confidence":0.25}},"usage":{"input_tokens":5,"output_tokens":2}}`,
		},
		"OpenAI's": {
			ofOpenAI,
			`{"model": "m", "input": "t", "safety_identifier": "x", "questions": [{"type": "predicate", "name": "z", "instructions": [{"type": "input_json", "data": {"label": "refund"}}]}, {"type": "choice", "instructions": "which?", "choices": [{"value": "y"}, {"value": true, "description": "a\nb"}]}, ` +
				`{"type": "score", "name": "c", "instructions": "", "levels": [{"label": "low"}, {"label": "mid", "description": "mid"}, {"label": "high"}]}]}`,
			`{"model":"m","answers":[{"type":"predicate","name":"z","probability":0.25},{"type":"choice","name":null,"choice":"y","confidence":0.5,"probabilities":[{"value":"y","probability":0.75},{"value":true,"probability":0.25}],"x_basis":"descriptions"},` +
				`{"type":"score","name":"c","score":1,"confidence":0.25,"probabilities":[{"value":0,"label":"low","probability":0.5},{"value":1,"label":"mid","probability":0},{"value":2,"label":"high","probability":0.5}]}],` +
				`"usage":{"input_tokens":5,"input_tokens_details":{"cache_write_tokens":0,"cached_tokens":1},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":7}}`,
		},
	} {
		r := must.Get(test.read([]byte(test.body)))(t)
		if r.Item.Text != "t" || r.Model != "m" || len(r.Questions) != 3 || r.Questions[0].Label != "refund" || r.Questions[1].Options[1].Text != "a\nb" || r.Questions[2].Kind != Score {
			t.Errorf("%s: %+v", name, r)
		}
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		must.Do(t, enc.Encode(test.write("m", r, answers, sdk.Usage{InputTokens: 5, CachedTokens: 1, OutputTokens: 2})))
		if d := cmp.Diff(test.want, strings.TrimSpace(b.String())); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestInputs: the text of OpenAI's input.
func TestInputs(t *testing.T) {
	for input, want := range map[string]workspace.Item{
		`"t"`: {Text: "t"},
		`[{"role": "developer", "content": "d"}, {"role": "user", "content": "first"}, {"role": "user", "content": "t"}, {"type": "function_call", "name": "f"}]`: {Text: "t"},
		`[{"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]}]`:                                               {Text: "a\nb"},
		`[{"role": "user", "content": [{"type": "input_json", "data": {"text": "t", "plan": "pro"}}]}]`:                                                           {Text: "t", Meta: sdk.Meta{"plan": "pro"}},
	} {
		var r Request
		must.Do(t, r.input(json.RawMessage(input)))
		if d := cmp.Diff(want, r.Item, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s (-want +got):\n%s", input, d)
		}
	}
}

// TestReadMistakes: mistakes have their path.
func TestReadMistakes(t *testing.T) {
	options, questions, noul := make([]string, MaxOptions), make([]string, MaxQuestions+1), `{"type": "noul", "instructions": "x"}`
	for i := range options {
		options[i] = fmt.Sprintf(`"o%d": null`, i)
	}
	for i := range questions {
		questions[i] = fmt.Sprintf(`"q%d": %s`, i, noul)
	}
	state := func(questions string) string { return `{"model": "m", "state": "s", "questions": {` + questions + `}}` }
	input := func(questions string) string { return `{"model": "m", "input": "s", "questions": [` + questions + `]}` }
	for _, test := range []struct {
		form
		body, path, message string
	}{
		{ofTypeSafe, `{`, "", "no request"}, {ofTypeSafe, `[]`, "", "no request"}, {ofTypeSafe, `{"model": 7}`, "", "no request"},
		{ofTypeSafe, `{"model": "m", "questions": {}}`, "state", "no state"}, {ofTypeSafe, `{"model": "m", "state": null, "questions": {}}`, "state", "text, an object"}, {ofTypeSafe, `{"model": "m", "state": 7}`, "state", "text, an object"},
		{ofTypeSafe, state(""), "questions", "at least one"}, {ofTypeSafe, `{"state": "s", "questions": {"q": ` + noul + `}}`, "model", "name the pipeline"}, {ofTypeSafe, `{"model": "m", "state": "s"}`, "questions", "at least one"},
		{ofTypeSafe, state(`"q": 7`), "questions.q", "it is an object"}, {ofTypeSafe, state(`"q": {}`), "questions.q.type", "it is noul"}, {ofTypeSafe, state(`"q": {"type": "box"}`), "questions.q.type", `"box" is no type`},
		{ofTypeSafe, state(`"q": {"type": "choice", "criteria": ["a", "b"]}`), "questions.q.criteria", "it is an object"}, {ofTypeSafe, state(`"q": {"type": "choice", "criteria": {"a": null}}`), "questions.q", "1 options"},
		{ofTypeSafe, state(`"q": {"type": "choice", "criteria": {"a": null, "a": null}}`), "questions.q", `"a" twice`}, {ofTypeSafe, state(`"q": ` + noul + `, "q": ` + noul), "questions.q", "two questions"},
		{ofTypeSafe, state(`"q": {"type": "score", "criteria": {"0": "a"}}`), "questions.q.criteria", "a list"}, {ofTypeSafe, state(`"q": {"type": "score", "criteria": ["a", null]}`), "questions.q.criteria.1", "says nothing"},
		{ofTypeSafe, state(`"q": {"type": "noul", "criteria": [1]}`), "questions.q.criteria", "true, false"}, {ofTypeSafe, state(strings.Join(questions, ",")), "questions", "401 questions"},
		{ofTypeSafe, state(`"q": {"type": "choice", "criteria": {` + strings.Join(options, ",") + `}}, "r": {"type": "choice", "criteria": {"a": null, "b": null}}`), "questions", "20002 options"},
		{ofOpenAI, `{"questions": {}}`, "", "no request"}, {ofOpenAI, `{"model": "m", "questions": []}`, "input", "list of messages"}, {ofOpenAI, `{"model": "m", "input": [7]}`, "input", "list of messages"},
		{ofOpenAI, `{"model": "m", "input": [{"role": "user", "content": [7]}]}`, "input", "list of parts"}, {ofOpenAI, `{"model": "m", "input": [{"role": "system", "content": "x"}]}`, "input", "role user"}, {ofOpenAI, `{"model": "m", "input": [{"role": "user", "content": [{"type": "input_image"}]}]}`, "input", `"input_image"`},
		{ofOpenAI, input(""), "questions", "at least one"}, {ofOpenAI, input(`{"type": "noul"}`), "questions.0.type", `"noul" is no type`}, {ofOpenAI, input(`{"type": "choice", "choices": [{"value": 7}]}`), "questions.0", "text, true or false"},
		{ofOpenAI, input(`{"type": "choice", "choices": [{"value": "a"}, {"value": "a"}]}`), "questions.0", "twice"}, {ofOpenAI, input(`{"type": "score", "levels": []}`), "questions.0", "0 options"},
	} {
		_, err := test.read([]byte(test.body))
		var wrong *Mistake
		if !errors.As(err, &wrong) || wrong.Path() != test.path || !strings.Contains(wrong.Message, test.message) {
			t.Errorf("%.200s: %v", test.body, err)
		}
	}
	if _, err := ReadDecisions([]byte(input(`{"type": "choice", "choices": [{"value": "true"}, {"value": true}]}`))); err != nil {
		t.Errorf("a text and a truth value are two: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"model": "m", "state": {"text": "t"}, "input": [{"role": "user", "content": "t"}], "questions": {"q": {"type": "choice", "criteria": {"a": null, "b": {"label": "x"}}}}}`))
	f.Add([]byte(`{"model": "m", "input": "t", "questions": [{"type": "score", "levels": [{"label": "a"}, {"label": "b"}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, form := range []form{ofTypeSafe, ofOpenAI} {
			r, err := form.read(body)
			if err != nil {
				continue
			}
			for _, q := range r.Questions {
				if q.Kind != Predicate && len(q.Options) < 2 || q.Kind == Predicate && len(q.Options) != 2 {
					t.Errorf("%q: %+v", body, q)
				}
			}
		}
	})
}
