package decide

import (
	"fmt"
	"strings"

	"github.com/racflow/racflow/engine/internal/workspace"
)

// Limits of a request.
const (
	MaxQuestions = 400    // as in OpenAI's form
	MaxOptions   = 20_000 // of all questions
	MaxTexts     = 1_000  // descriptions that are compared with the text
)

// Request is a text and questions about it, independent of the form.
type Request struct {
	Model     string // the pipeline, or an alias of it
	Item      workspace.Item
	Questions []Question
}

// Question is a typed question.
type Question struct {
	Name    string // name of the question and its answer; empty: none
	Kind    Kind
	About   string   // the instructions
	Label   string   // that a predicate names by {"label": ...}; empty: its instructions may be a label
	Options []Option // of a choice; levels of a score, lowest first; for a predicate the cases true and false
	At      []any    // path in the request, such as questions, team
}

// Kind is the kind of a question.
type Kind int

// The kinds.
const (
	Predicate Kind = iota + 1 // how probable is this
	Choice                    // which of the options
	Score                     // which of the levels, which are ordered
)

// Option is an option of a choice, or a level of a score.
type Option struct {
	Name, Text string // Text describes the option; empty: the name replaces it
	Value      any    // the name or level as the request has it
}

// described returns the option's text for comparisons.
func (o Option) described() string {
	if o.Name == "" || o.Text == "" {
		return o.Name + o.Text
	}
	return o.Name + ": " + o.Text
}

// Mistake is an error in a request.
type Mistake struct {
	At      []any  // path, such as questions, team, criteria; nil: the body as a whole
	Type    string // in one word, such as missing
	Message string
}

// Types of mistakes. NotLabel can be found only with the pipeline's labels.
const (
	NotJSON  = "json_invalid"
	Missing  = "missing"
	Wrong    = "value_error"
	NotLabel = "not_a_label"
)

// Error implements error.
func (m *Mistake) Error() string {
	if len(m.At) == 0 {
		return m.Message
	}
	return m.Path() + ": " + m.Message
}

// Path returns the path to the mistake, with dots.
func (m *Mistake) Path() string {
	var parts []string
	for _, part := range m.At {
		parts = append(parts, fmt.Sprint(part))
	}
	return strings.Join(parts, ".")
}

func mistake(at []any, kind, format string, args ...any) *Mistake {
	return &Mistake{at, kind, fmt.Sprintf(format, args...)}
}

func tooMany(questions int) *Mistake {
	return mistake([]any{"questions"}, Wrong, "there are %d questions, and a request has at most %d", questions, MaxQuestions)
}

// check checks the limits of a request, and finds options that are given twice.
func (r Request) check() error {
	options := 0
	switch n := len(r.Questions); {
	case r.Model == "":
		return mistake([]any{"model"}, Missing, "name the pipeline that is asked: GET /v1/models lists them")
	case n == 0:
		return mistake([]any{"questions"}, Missing, "ask at least one question")
	case n > MaxQuestions:
		return tooMany(n)
	}
	for _, q := range r.Questions {
		if options += len(q.Options); q.Kind != Predicate && len(q.Options) < 2 {
			return mistake(q.At, Wrong, "it has %d options, and needs at least 2", len(q.Options))
		}
		seen := map[any]bool{}
		for _, o := range q.Options {
			if q.Kind != Choice {
				break
			}
			if seen[o.Value] {
				return mistake(q.At, Wrong, "it has the option %q twice", o.Name)
			}
			seen[o.Value] = true
		}
	}
	if options > MaxOptions {
		return mistake([]any{"questions"}, Wrong, "the questions have %d options, and a request has at most %d", options, MaxOptions)
	}
	return nil
}
