package decide

import (
	"encoding/json"
	"strconv"

	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
)

// This file implements TypeSafe's form, which clients of Jev send to POST /v1/systemone. See the sources of
// typesafe-sdk 0.7.5.

// SystemOneRequest describes the form.
type SystemOneRequest struct {
	_         struct{}                     `additionalProperties:"true"`
	Model     string                       `json:"model" doc:"The pipeline, or an alias of it"`
	State     any                          `json:"state" doc:"The text; or an object with one, whose other fields are metadata; of other JSON all strings are the text"`
	Questions map[string]SystemOneQuestion `json:"questions" doc:"By ids of your choice"`
}

// SystemOneQuestion is a question in that form.
type SystemOneQuestion struct {
	_            struct{}        `additionalProperties:"true"`
	Type         string          `json:"type" enum:"noul,choice,score"`
	Instructions json.RawMessage `json:"instructions,omitempty" doc:"Of a noul: the label that it is about, or {\"label\": NAME}"`
	Criteria     json.RawMessage `json:"criteria,omitempty" doc:"Of a choice: the options, each with a description or null; of a score the levels, lowest first; of a noul perhaps true and false"`
}

// SystemOneReply is the response.
type SystemOneReply struct {
	Model   string        `json:"model" doc:"The pipeline"`
	Answers result.Fields `json:"answers" doc:"By the ids of the questions"`
	Usage   struct {
		Input  uint64 `json:"input_tokens" doc:"That language models took; 0: none was asked"`
		Output uint64 `json:"output_tokens"`
	} `json:"usage"`
}

type noulAnswer struct {
	Type  string  `json:"type"`
	Noul  float64 `json:"noul"`
	Basis string  `json:"x_basis,omitempty"`
}

type choiceAnswer struct {
	Type          string        `json:"type"`
	Choice        string        `json:"choice"`
	Probabilities result.Fields `json:"probabilities"`
	Confidence    float64       `json:"confidence"`
	Basis         string        `json:"x_basis,omitempty"`
}

type scoreAnswer struct {
	Type          string        `json:"type"`
	Score         float64       `json:"score"`
	Legend        result.Fields `json:"legend"`
	Probabilities result.Fields `json:"probabilities"`
	Confidence    float64       `json:"confidence"`
	Basis         string        `json:"x_basis,omitempty"`
}

// ReadSystemOne reads a request. An error is a Mistake.
func ReadSystemOne(body []byte) (r Request, err error) {
	var in struct {
		Model     string
		State     json.RawMessage
		Questions result.Fields
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return r, mistake(nil, NotJSON, "the body is no request: %v", err)
	}
	r.Model = in.Model
	switch kindOf(in.State) {
	case '"', '{', '[':
	case 0:
		return r, mistake([]any{"state"}, Missing, "there is no state, which would be the text that is asked about")
	default:
		return r, mistake([]any{"state"}, Wrong, "it is a text, an object or an array")
	}
	if r.Item, err = itemOf(in.State); err != nil {
		return r, mistake([]any{"state"}, Wrong, "%v", err)
	}
	if n := len(in.Questions); n > MaxQuestions {
		return r, tooMany(n)
	}
	seen := map[string]bool{}
	for _, f := range in.Questions {
		q := Question{Name: f.Name, At: []any{"questions", f.Name}}
		raw, ok := f.Value.(json.RawMessage)
		var one SystemOneQuestion
		if seen[f.Name] {
			return r, mistake(q.At, Wrong, "there are two questions of this id")
		}
		if seen[f.Name] = true; !ok || json.Unmarshal(raw, &one) != nil {
			return r, mistake(q.At, Wrong, "it is an object with a type, instructions and criteria")
		}
		q.About, q.Label = wording(one.Instructions)
		if err := q.criteria(one.Type, one.Criteria); err != nil {
			return r, err
		}
		r.Questions = append(r.Questions, q)
	}
	return r, r.check()
}

// criteria reads the options or levels of a question.
func (q *Question) criteria(kind string, raw json.RawMessage) error {
	at := append(q.At[:2:2], "criteria")
	switch kind {
	case "noul":
		var sides struct{ True, False json.RawMessage }
		if len(raw) > 0 && json.Unmarshal(raw, &sides) != nil {
			return mistake(at, Wrong, "of a noul it is an object with true, false or both, or null")
		}
		yes, label := wording(sides.True)
		no, _ := wording(sides.False)
		if q.Kind, q.Options = Predicate, []Option{{Text: yes}, {Text: no}}; q.Label == "" {
			q.Label = label
		}
	case "choice":
		var options result.Fields
		if kindOf(raw) != '{' || json.Unmarshal(raw, &options) != nil {
			return mistake(at, Wrong, "of a choice it is an object: each option with its description or null")
		}
		q.Kind = Choice
		for _, f := range options {
			q.Options = append(q.Options, Option{Name: f.Name, Text: described(f.Value), Value: f.Name})
		}
	case "score":
		var levels []json.RawMessage
		if json.Unmarshal(raw, &levels) != nil {
			return mistake(at, Wrong, "of a score it is a list of levels, the lowest first")
		}
		q.Kind = Score
		for i, level := range levels {
			name, label := wording(level)
			if name == "" {
				return mistake(append(at, i), Wrong, "the level says nothing")
			}
			if label != "" {
				q.Options = append(q.Options, Option{Name: label, Text: name, Value: level})
			} else {
				q.Options = append(q.Options, Option{Name: name, Value: level})
			}
		}
	case "":
		return mistake(append(q.At[:2:2], "type"), Missing, "it is noul, choice or score")
	default:
		return mistake(append(q.At[:2:2], "type"), Wrong, "%q is no type of a question: it is noul, choice or score", kind)
	}
	return nil
}

// described returns a description, which may be JSON, as text.
func described(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case json.RawMessage:
		text, _ := wording(v)
		return text
	}
	return ""
}

// WriteSystemOne returns the response, a SystemOneReply.
func WriteSystemOne(model string, r Request, answers []Answer, used sdk.Usage) any {
	out := SystemOneReply{Model: model, Answers: result.Fields{}}
	out.Usage.Input, out.Usage.Output = used.InputTokens, used.OutputTokens
	for i, a := range answers {
		q := r.Questions[i]
		var one any
		switch q.Kind {
		case Predicate:
			one = noulAnswer{"noul", a.P[0], a.basis()}
		case Choice:
			p := make(result.Fields, len(a.P))
			for i, o := range q.Options {
				p[i] = result.Field{Name: o.Name, Value: a.P[i]}
			}
			one = choiceAnswer{"choice", q.Options[a.Best].Name, p, a.Confidence, a.basis()}
		case Score:
			p, legend := make(result.Fields, len(a.P)), make(result.Fields, len(a.P))
			for i, o := range q.Options {
				p[i], legend[i] = result.Field{Name: strconv.Itoa(i), Value: a.P[i]}, result.Field{Name: strconv.Itoa(i), Value: o.Value}
			}
			one = scoreAnswer{"score", a.Score(), legend, p, a.Confidence, a.basis()}
		}
		out.Answers = append(out.Answers, result.Field{Name: q.Name, Value: one})
	}
	return out
}

// basis returns the source of an answer; empty or nil: the election.
func (a Answer) basis() string {
	if a.Described {
		return "descriptions"
	}
	return ""
}
