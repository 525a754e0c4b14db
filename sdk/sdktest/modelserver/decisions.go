package modelserver

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// This file is a server of decision models. It answers POST /systemone and /decisions, and every
// other address that gets questions. Options.Answer names the right option, or a label below it, such
// as a/b below a; without Answer, the first option is right. The right option gets nine tenths.

// Decides says how a server of decision models differs from TypeSafe's and OpenAI's own.
type Decides struct {
	Decimals   int      // of probabilities; 0: all decimals
	MaxOptions int      // of a choice; a choice with more is refused; 0: 255
	Envelope   bool     // the reply is in the property result of an object, as at Cloudflare
	Truncates  bool     // the state was cut, and usage says so
	Refuses    bool     // every second question is refused, by its type
	Names      []string // the model's names in replies, in turn; nil: the name in the request
	Unable     bool     // the model cannot decide: status 501
}

// Question is a question to a decision model.
type Question struct {
	Type    string
	Text    string   // its instructions, as sent
	Options []string // of a choice, in order

	id string // names the answer
}

// deciding holds the behaviours of servers of decision models.
var deciding = []Behaviour{
	{Name: "decides", Server: "returns probabilities, by POST /systemone", Racflow: votes, Try: AsSystemOne, set: func(*Options) {}},
	{Name: "decides-as-openai", Server: "returns probabilities, by POST /decisions", Racflow: votes, Try: AsDecisions, set: func(*Options) {}},
	{
		Name: "rounds-probabilities", Server: "rounds probabilities to two decimals", Racflow: "takes nothing for impossible", Try: AsSystemOne,
		set: func(o *Options) { o.Decides.Decimals = 2 },
	},
	{
		Name: "takes-two-options", Server: "refuses a choice with more than two options", Racflow: "asks about the nearest labels alone",
		Says: "the service takes fewer options", Try: AsWideSystemOne, set: func(o *Options) { o.Decides.MaxOptions = 2 },
	},
	{
		Name: "wraps-decisions", Server: "puts its reply into an envelope, as Cloudflare does", Racflow: "opens it", Try: AsSystemOne,
		set: func(o *Options) { o.Decides.Envelope = true },
	},
	{
		Name: "truncates-states", Server: "cuts what it is asked about, and says so in usage", Racflow: "reports it once", Says: "the service has cut what it was asked about",
		Try: AsSystemOne, set: func(o *Options) { o.Decides.Truncates = true },
	},
	{
		Name: "refuses-questions", Server: "refuses one of the two orders of each question", Racflow: "takes the answer to the other", Try: AsDecisions,
		set: func(o *Options) { o.Decides.Refuses = true },
	},
	{
		Name: "moves-its-name", Server: "answers by another model from its second reply on, under one name", Racflow: "reports it once: answers of two models stand side by side",
		Says: "answers come from two models", Try: AsSystemOne, set: func(o *Options) { o.Decides.Names = []string{"one-1.0", "one-1.1"} },
	},
	{
		Name: "cannot-decide", Server: "answers 501, as for a model that does not decide", Racflow: stops, Exit: 3, Lost: true, Says: "this model does not decide",
		Try: AsSystemOne, set: func(o *Options) { o.Decides.Unable = true },
	},
}

const votes = "votes by the distribution, over two orders of the options"

// systemOne reports whether an address has TypeSafe's form.
func systemOne(path string) bool { return strings.HasSuffix(path, "/systemone") }

// readQuestions reads the questions to a decision model; the prompt is the text of its state.
func (a *Ask) readQuestions() {
	state := a.sent.Get("state")
	if !state.Exists() {
		if state = a.sent.Get("input"); state.IsArray() {
			state = state.Get("0.content.0.data")
		}
	}
	if a.Prompt = state.String(); state.IsObject() {
		a.Prompt = state.Get("text").String()
	}
	a.sent.Get("questions").ForEach(func(id, q gjson.Result) bool {
		one := Question{id: id.String(), Type: q.Get("type").String(), Text: q.Get("instructions").Raw}
		q.Get("criteria").ForEach(func(option, _ gjson.Result) bool {
			one.Options = append(one.Options, option.String())
			return one.Type == "choice"
		})
		for _, choice := range q.Get("choices").Array() {
			one.Options = append(one.Options, choice.Get("value").String())
		}
		a.Questions = append(a.Questions, one)
		return true
	})
}

// decide answers the questions of a request.
func (s *Server) decide(a Ask) (any, error) {
	o := s.options.Decides
	if o.Unable {
		return nil, &refusal{message: "this model does not decide", status: http.StatusNotImplemented}
	}
	most := o.MaxOptions
	if most == 0 {
		most = 255
	}
	answers, byID := []any{}, object{}
	for i, q := range a.Questions {
		if len(q.Options) > most {
			return nil, &refusal{message: fmt.Sprintf("question %d has %d options, and at most %d are supported", i+1, len(q.Options), most)}
		}
		answer := object{"type": "refusal", "name": nil}
		if !o.Refuses || i%2 == 0 {
			answer = s.probable(a, q)
		}
		answers, byID[q.id] = append(answers, answer), answer
	}
	in, cached := s.charge(a, 1, 0)
	used := object{"input_tokens": in, "output_tokens": 0, "input_tokens_details": object{"cached_tokens": cached}}
	if o.Truncates {
		used["truncated"] = true
	}
	reply := object{"model": a.Model, "answers": answers, "usage": used}
	if systemOne(a.Path) || o.Envelope {
		reply["answers"] = byID
	}
	if n := len(o.Names); n > 0 {
		reply["model"] = o.Names[min(a.Number, n-1)]
	}
	if o.Envelope {
		return object{"result": reply, "success": true, "errors": []any{}}, nil
	}
	return reply, nil
}

// probable returns the answer to a question, in the form of the request's address.
func (s *Server) probable(a Ask, q Question) object {
	right := ""
	if s.options.Answer != nil {
		right = s.options.Answer(a, 0)
	} else if len(q.Options) > 0 {
		right = q.Options[0]
	}
	if q.Options == nil {
		p := s.round(0.1)
		if right != "" && strings.Contains(q.Text, right) {
			p = s.round(0.9)
		}
		return object{"type": q.Type, "noul": p, "probability": p, "name": nil}
	}
	of, list := object{}, []any{}
	fits := func(option string) bool { return option == right || strings.HasPrefix(right, option+"/") }
	for _, option := range q.Options {
		p := 0.1 / float64(max(len(q.Options)-1, 1))
		switch {
		case !slices.ContainsFunc(q.Options, fits):
			p = 1 / float64(len(q.Options))
		case fits(option):
			p = 0.9
		}
		of[option] = s.round(p)
		list = append(list, object{"value": option, "probability": of[option]})
	}
	answer := object{"type": q.Type, "choice": right, "confidence": 0.5, "probabilities": list, "name": nil}
	if systemOne(a.Path) || s.options.Decides.Envelope {
		answer["probabilities"] = of
	}
	return answer
}

// round returns a probability as the server writes it.
func (s *Server) round(p float64) float64 {
	if s.options.Decides.Decimals == 0 {
		return p
	}
	scale := math.Pow10(s.options.Decides.Decimals)
	return math.Round(p*scale) / scale
}

// decided returns the encoded reply to questions.
func (s *Server) decided(a Ask) ([]byte, error) {
	reply, err := s.decide(a)
	if err != nil {
		return nil, err
	}
	return json.Marshal(reply)
}
