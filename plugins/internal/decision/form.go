package decision

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/fewshot"
	"github.com/racflow/racflow/sdk"
)

// State is the subject of questions.
type State struct {
	Text     string
	Examples []fewshot.Example // similar labelled texts; may be empty
}

// content returns the state for JSON: the text, or an object with the examples before the text.
func (s State) content() any {
	if len(s.Examples) == 0 {
		return s.Text
	}
	type example struct {
		Text  string `json:"text"`
		Label string `json:"label"`
	}
	all := struct {
		Examples []example `json:"labelled_examples"`
		Text     string    `json:"text"`
	}{Text: s.Text}
	for _, e := range s.Examples {
		all.Examples = append(all.Examples, example(e))
	}
	return all
}

// Question is a question about a state: which option applies, or without options, whether something is true.
type Question struct {
	About   string
	Label   string   // subject of a question without options; empty: About names it
	Options []Option // at least two, in the order of the request; nil: yes or no
}

// Option is one of the answers to a question.
type Option struct {
	Name string
	Text string // its description; empty: the name is enough
}

// Answer is a model's answer to a question.
type Answer struct {
	P       []float64 `json:"p,omitempty"` // by option, adding up to 1; without options, the probability of yes
	Refused bool      `json:"refused,omitempty"`
}

// Reply holds the answers to the questions of a request, in their order.
type Reply struct {
	Model   string    `json:"model"` // the model that answered, by its own name
	Answers []Answer  `json:"answers"`
	Usage   sdk.Usage `json:"usage"`

	truncated bool // the model has not read the whole state
}

// form is a format of requests and replies.
type form struct {
	path    string
	address string // of the company that defined it
	body    func(model string, s State, all []Question) map[string]any
	answer  func(q Question, number int, reply gjson.Result) (p []gjson.Result, refused bool)
}

// mostQuestions is the number of questions that every server accepts in a request.
const mostQuestions = 64

// forms holds the forms by config.API.
var forms = map[string]form{
	"systemone": {"/systemone", "https://api.typesafe.ai/v1", writeSystemOne, readSystemOne},
	"decisions": {"/decisions", "https://api.openai.com/v1", writeDecisions, readDecisions},
}

// ordered is a JSON object that keeps the order of its members.
type ordered []Option

// MarshalJSON writes the names with their texts, or null.
func (o ordered) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, option := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, fewshot.JSON(option.Name)...), ':')
		if option.Text == "" {
			b = append(b, "null"...)
		} else {
			b = append(b, fewshot.JSON(option.Text)...)
		}
	}
	return append(b, '}'), nil
}

// subject returns the subject of a question without options.
func (q Question) subject() any {
	if q.Label == "" {
		return q.About
	}
	return map[string]string{"label": q.Label, "question": q.About}
}

func writeSystemOne(model string, s State, all []Question) map[string]any {
	questions := map[string]any{}
	for i, q := range all {
		one := map[string]any{"type": "noul", "instructions": q.subject()}
		if q.Options != nil {
			one = map[string]any{"type": "choice", "instructions": q.About, "criteria": ordered(q.Options)}
		}
		questions[id(i)] = one
	}
	return map[string]any{"model": model, "state": s.content(), "questions": questions}
}

// id names a question of a request; models do not see the name.
func id(number int) string { return "q" + strconv.Itoa(number) }

func readSystemOne(q Question, number int, reply gjson.Result) (p []gjson.Result, refused bool) {
	a := reply.Get("answers." + id(number))
	if q.Options == nil {
		return []gjson.Result{a.Get("noul")}, a.Get("type").Str == refusal
	}
	of := a.Get("probabilities").Map()
	for _, o := range q.Options {
		p = append(p, of[o.Name])
	}
	return p, a.Get("type").Str == refusal
}

// refusal is the type of an answer with which a model refuses.
const refusal = "refusal"

func writeDecisions(model string, s State, all []Question) map[string]any {
	data := func(content any) any { return []any{map[string]any{"type": "input_json", "data": content}} }
	var questions []any
	for _, q := range all {
		one := map[string]any{"type": "predicate", "instructions": q.About}
		if q.Label != "" {
			one["instructions"] = data(q.subject())
		}
		if q.Options != nil {
			var choices []any
			for _, o := range q.Options {
				choice := map[string]any{"value": o.Name}
				if o.Text != "" {
					choice["description"] = o.Text
				}
				choices = append(choices, choice)
			}
			one = map[string]any{"type": "choice", "instructions": q.About, "choices": choices}
		}
		questions = append(questions, one)
	}
	input := s.content()
	if _, text := input.(string); !text {
		input = []any{map[string]any{"role": "user", "content": data(input)}}
	}
	return map[string]any{"model": model, "input": input, "questions": questions}
}

func readDecisions(q Question, number int, reply gjson.Result) (p []gjson.Result, refused bool) {
	a := reply.Get("answers").Get(strconv.Itoa(number))
	if q.Options == nil {
		return []gjson.Result{a.Get("probability")}, a.Get("type").Str == refusal
	}
	of := map[string]gjson.Result{}
	for _, one := range a.Get("probabilities").Array() {
		of[one.Get("value").String()] = one.Get("probability")
	}
	for _, o := range q.Options {
		p = append(p, of[o.Name])
	}
	return p, a.Get("type").Str == refusal
}

// read reads the reply to questions.
func (f form) read(body []byte, all []Question) (Reply, error) {
	root := gjson.ParseBytes(body)
	if inner := root.Get("result"); !root.Get("answers").Exists() && inner.Get("answers").Exists() { // Cloudflare's envelope
		root = inner
	}
	used := root.Get("usage")
	r := Reply{Model: root.Get("model").String(), truncated: used.Get("truncated").Bool(), Usage: sdk.Usage{
		InputTokens: api.Count(used.Get("input_tokens").Num), OutputTokens: api.Count(used.Get("output_tokens").Num),
	}}
	r.Usage.CachedTokens = min(api.Count(max(used.Get("input_tokens_details.cached_tokens").Num, 0)), r.Usage.InputTokens)
	if !root.Get("answers").Exists() {
		return r, errors.New("it has no answers")
	}
	for i, q := range all {
		given, refused := f.answer(q, i, root)
		p, err := probabilities(given, q.Options != nil)
		if err != nil && !refused {
			return r, fmt.Errorf("the answer to question %d: %w", i+1, err)
		}
		r.Answers = append(r.Answers, Answer{P: p, Refused: refused})
	}
	return r, nil
}

// rounded is the greatest probability that becomes 0 on servers with two decimals.
const rounded = 0.005

// probabilities converts numbers that may have been rounded into a distribution; a single number stays unchanged. An
// option with probability 0 gets half of the least other probability, since the election must not treat it as
// impossible.
func probabilities(given []gjson.Result, distribution bool) ([]float64, error) {
	p, sum, floor := make([]float64, len(given)), 0.0, 2*rounded
	for i, g := range given {
		if p[i] = g.Num; g.Type != gjson.Number || !(p[i] >= 0 && p[i] <= 1.01) {
			return nil, fmt.Errorf("%q is no probability", g.Raw)
		}
		if p[i] > 0 {
			floor = min(floor, p[i])
		}
		sum += p[i]
	}
	if !distribution {
		p[0] = min(max(p[0], rounded), 1-rounded)
		return p, nil
	}
	if math.Abs(sum-1) > 0.01*float64(len(p)) {
		return nil, fmt.Errorf("the probabilities add up to %.3g", sum)
	}
	sum = 0
	for i := range p {
		p[i] = max(p[i], floor/2)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p, nil
}
