package decide

import (
	"encoding/json"
	"strconv"

	"github.com/racflow/racflow/sdk"
)

// This file implements OpenAI's form, POST /v1/decisions. See the sources of openai 3.57.0 for
// Python.

// DecisionsRequest describes the form.
type DecisionsRequest struct {
	_         struct{}            `additionalProperties:"true"`
	Model     string              `json:"model" doc:"The pipeline, or an alias of it"`
	Input     json.RawMessage     `json:"input" doc:"The text; or messages, of which the last one of the role user is it, as parts of the types input_text and input_json"`
	Questions []DecisionsQuestion `json:"questions" doc:"1 to 400"`
}

// DecisionsQuestion is a question in that form.
type DecisionsQuestion struct {
	_            struct{}          `additionalProperties:"true"`
	Type         string            `json:"type" enum:"predicate,choice,score"`
	Name         *string           `json:"name,omitempty"`
	Instructions json.RawMessage   `json:"instructions,omitempty" doc:"Of a predicate: the label that it is about; or a part of the type input_json with {\"label\": NAME}"`
	Choices      []DecisionsOption `json:"choices,omitempty" doc:"Of a choice"`
	Levels       []DecisionsLevel  `json:"levels,omitempty" doc:"Of a score, lowest first"`
}

// DecisionsOption is an option of a choice.
type DecisionsOption struct {
	_           struct{} `additionalProperties:"true"`
	Value       any      `json:"value" doc:"A text, true or false"`
	Description string   `json:"description,omitempty"`
}

// DecisionsLevel is a level of a score.
type DecisionsLevel struct {
	_           struct{} `additionalProperties:"true"`
	Label       string   `json:"label"`
	Description string   `json:"description,omitempty"`
}

// DecisionsReply is the response.
type DecisionsReply struct {
	Model   string            `json:"model" doc:"The pipeline"`
	Answers []DecisionsAnswer `json:"answers" doc:"In the order of the questions"`
	Usage   DecisionsUsage    `json:"usage" doc:"Tokens that language models took"`
}

// DecisionsAnswer is an answer, with the fields of its type.
type DecisionsAnswer struct {
	Type          string                 `json:"type" enum:"predicate,choice,score"`
	Name          *string                `json:"name"`
	Probability   *float64               `json:"probability,omitempty" doc:"Of a predicate"`
	Choice        any                    `json:"choice,omitempty"`
	Score         *float64               `json:"score,omitempty" doc:"The mean level, from 0"`
	Confidence    *float64               `json:"confidence,omitempty"`
	Probabilities []DecisionsProbability `json:"probabilities,omitempty"`
	Basis         string                 `json:"x_basis,omitempty" doc:"descriptions: no example was asked, and nothing calibrates the answer"`
}

// DecisionsProbability is the probability of an option or a level.
type DecisionsProbability struct {
	Value       any     `json:"value"`
	Label       string  `json:"label,omitempty" doc:"Of a level"`
	Probability float64 `json:"probability"`
}

// DecisionsUsage counts tokens.
type DecisionsUsage struct {
	Input        uint64 `json:"input_tokens"`
	InputDetails struct {
		Written uint64 `json:"cache_write_tokens"`
		Cached  uint64 `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	Output        uint64 `json:"output_tokens"`
	OutputDetails struct {
		Reasoning uint64 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	Total uint64 `json:"total_tokens"`
}

// ReadDecisions reads a request. An error is a Mistake.
func ReadDecisions(body []byte) (r Request, err error) {
	var in DecisionsRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return r, mistake(nil, NotJSON, "the body is no request: %v", err)
	}
	r.Model = in.Model
	if err := r.input(in.Input); err != nil {
		return r, err
	}
	for i, one := range in.Questions {
		q := Question{At: []any{"questions", i}}
		if q.About, q.Label = wording(one.Instructions); one.Name != nil {
			q.Name = *one.Name
		}
		switch one.Type {
		case "predicate":
			q.Kind, q.Options = Predicate, make([]Option, 2)
		case "choice":
			q.Kind = Choice
			for _, c := range one.Choices {
				o := Option{Text: c.Description, Value: c.Value}
				switch v := c.Value.(type) {
				case string:
					o.Name = v
				case bool:
					o.Name = strconv.FormatBool(v)
				default:
					return r, mistake(q.At, Wrong, "the value of a choice is a text, true or false")
				}
				q.Options = append(q.Options, o)
			}
		case "score":
			q.Kind = Score
			for _, l := range one.Levels {
				q.Options = append(q.Options, Option{Name: l.Label, Text: l.Description})
			}
		default:
			return r, mistake(append(q.At, "type"), Wrong, "%q is no type of a question: it is predicate, choice or score", one.Type)
		}
		r.Questions = append(r.Questions, q)
	}
	return r, r.check()
}

// input reads the text: the whole input, or its last message of the role user.
func (r *Request) input(raw json.RawMessage) (err error) {
	at := []any{"input"}
	switch kindOf(raw) {
	case '"':
		r.Item.Text = flat(raw)
		return nil
	case '[':
	default:
		return mistake(at, Missing, "it is a text or a list of messages")
	}
	var messages []struct {
		Role    string
		Content json.RawMessage
	}
	if err := json.Unmarshal(raw, &messages); err != nil {
		return mistake(at, Wrong, "it is a text or a list of messages: %v", err)
	}
	var content json.RawMessage
	for _, m := range messages {
		if m.Role == "user" {
			content = m.Content
		}
	}
	if content == nil {
		return mistake(at, Missing, "there is no message of the role user, which would be the text")
	}
	var parts []struct {
		Type, Text string
		Data       json.RawMessage
	}
	if kindOf(content) != '[' {
		r.Item.Text = flat(content)
		return nil
	}
	if err := json.Unmarshal(content, &parts); err != nil {
		return mistake(at, Wrong, "the content of a message is a text or a list of parts: %v", err)
	}
	for i, p := range parts {
		more := r.Item
		switch p.Type {
		case "input_text":
			more.Text = p.Text
		case "input_json":
			if more, err = itemOf(p.Data); err != nil {
				return mistake(at, Wrong, "%v", err)
			}
		default:
			return mistake(at, Wrong, "a part of the message is of the type %q, and pipelines take text", p.Type)
		}
		if i > 0 {
			more.Text = r.Item.Text + "\n" + more.Text
		}
		r.Item = more
	}
	return nil
}

// WriteDecisions returns the response, a DecisionsReply.
func WriteDecisions(model string, r Request, answers []Answer, used sdk.Usage) any {
	out := DecisionsReply{Model: model, Answers: []DecisionsAnswer{}}
	out.Usage = DecisionsUsage{Input: used.InputTokens, Output: used.OutputTokens, Total: used.InputTokens + used.OutputTokens}
	out.Usage.InputDetails.Cached = used.CachedTokens
	for i, a := range answers {
		q := r.Questions[i]
		one := DecisionsAnswer{Basis: a.basis()}
		if q.Name != "" {
			one.Name = &q.Name
		}
		for i, p := range a.P {
			switch q.Kind {
			case Predicate:
				one.Type, one.Probability = "predicate", &a.P[0]
			case Choice:
				one.Probabilities = append(one.Probabilities, DecisionsProbability{Value: q.Options[i].Value, Probability: p})
			case Score:
				one.Probabilities = append(one.Probabilities, DecisionsProbability{Value: i, Label: q.Options[i].Name, Probability: p})
			}
		}
		switch q.Kind {
		case Choice:
			one.Type, one.Choice, one.Confidence = "choice", q.Options[a.Best].Value, &a.Confidence
		case Score:
			score := a.Score()
			one.Type, one.Score, one.Confidence = "score", &score, &a.Confidence
		}
		out.Answers = append(out.Answers, one)
	}
	return out
}
