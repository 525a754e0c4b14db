package serve

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/racflow/racflow/engine/internal/serve/decide"
	"github.com/racflow/racflow/engine/internal/serve/live"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/sdk"
)

// This file lets clients of decision models ask a pipeline (package decide):
//
//	POST /v1/systemone   TypeSafe's form
//	POST /v1/decisions   OpenAI's form
//
// A body is a request, or a batch with one request per line. Errors have the form of the path, including errors of the
// guard. The answer to an invalid line is an error.

// decisionForm is one of the forms.
type decisionForm struct {
	read  func([]byte) (decide.Request, error)
	write func(model string, r decide.Request, answers []decide.Answer, used sdk.Usage) any
	// fail returns the body of an error response. The mistake is the request's, or nil.
	fail     func(*Problem, *decide.Mistake) any
	mistaken int    // the status for a request with a mistake
	state    string // the field with the text
}

var decisionForms = map[string]*decisionForm{
	"/v1/systemone": {
		read:  decide.ReadSystemOne,
		write: decide.WriteSystemOne,
		fail:  systemOneFailure, mistaken: http.StatusUnprocessableEntity, state: "state",
	},
	"/v1/decisions": {
		read:  decide.ReadDecisions,
		write: decide.WriteDecisions,
		fail:  decisionsFailure, mistaken: http.StatusBadRequest, state: "input",
	},
}

// decisionFormOf returns the form of a request's path; nil: the path belongs to another interface.
func decisionFormOf(r *http.Request) *decisionForm { return decisionForms[r.URL.Path] }

// refuseInForm refuses a request, in the form of its path.
func refuseInForm(r *http.Request, p *Problem) http.Handler {
	if form := decisionFormOf(r); form != nil {
		return form.refusal(p, nil)
	}
	return p
}

// MountDecisions adds both forms to a server.
func MountDecisions(s *Server) {
	s.decisions("/v1/systemone", "askSystemOne", "Answer typed questions about a text, in TypeSafe's form", schema[decide.SystemOneRequest](s), schema[decide.SystemOneReply](s), schema[systemOneError](s))
	s.decisions("/v1/decisions", "createDecision", "Answer typed questions about a text, in OpenAI's form", schema[decide.DecisionsRequest](s), schema[decide.DecisionsReply](s), schema[refused](s))
}

func (s *Server) decisions(path, id, summary string, request, reply, failed *huma.Schema) {
	form := decisionForms[path]
	answered := responses{}.and(as("application/json", reply), http.StatusOK).and(map[string]*huma.MediaType{linesType: {
		Schema: &huma.Schema{Type: huma.TypeString, Description: "The answers of a batch, one a line"}, Extensions: map[string]any{"x-itemSchema": &huma.Schema{OneOf: []*huma.Schema{reply, failed}}},
	}}, http.StatusOK)
	answered.and(as("application/json", failed), http.StatusBadRequest, http.StatusUnauthorized, http.StatusNotFound, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout)
	s.handle(huma.Operation{
		OperationID: id, Method: http.MethodPost, Path: path, Summary: summary, Tags: []string{"decisions"},
		Description: "An option is a label of the pipeline, by its id or name; none is what lies outside of the options. Further fields have no effect. A body of the type " + linesType + " is a batch, one request a line.",
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: request}, linesType: {Schema: &huma.Schema{Type: huma.TypeString}}}},
		Responses:   answered,
	}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isLines(r) {
			s.batch(w, r, form.batch(s))
			return
		}
		body, p := readJSON(r)
		if p != nil {
			var wrong *decide.Mistake
			if p.Status == http.StatusBadRequest {
				wrong = &decide.Mistake{Type: decide.NotJSON, Message: p.Detail}
				p = form.problem(wrong)
			}
			form.refusal(p, wrong).ServeHTTP(w, r)
			return
		}
		value, problem, wrong := form.answer(r.Context(), s, body, s.decide)
		if problem != nil {
			form.refusal(problem, wrong).ServeHTTP(w, r)
			return
		}
		writeJSON(w, "application/json", http.StatusOK, value)
	}))
}

// batch returns the form's interface for batches. Each line names its model.
func (form *decisionForm) batch(s *Server) batchFace {
	failed := func(p *Problem) any { return form.fail(p, nil) }
	return batchFace{
		read: func(content []byte, charset string, _ int, err error) func(context.Context) any {
			if err == nil {
				_, err = mistake(content, charset)
			}
			if err != nil {
				wrong := &decide.Mistake{Type: decide.NotJSON, Message: err.Error()}
				return func(context.Context) any { return form.fail(form.problem(wrong), wrong) }
			}
			content = slices.Clone(content)
			return func(ctx context.Context) any {
				value, problem, wrong := form.answer(ctx, s, content, func(ctx context.Context, p Pipeline, i workspace.Item) (workspace.Result, error) {
					return patient(ctx, s, func(ctx context.Context) (workspace.Result, error) { return s.decide(ctx, p, i) })
				})
				if problem != nil {
					return form.fail(problem, wrong)
				}
				return value
			}
		},
		end:    failed,
		refuse: func(p *Problem) http.Handler { return form.refusal(p, nil) },
	}
}

// decide takes an item through a pipeline. An item that fails is an error.
func (s *Server) decide(ctx context.Context, p Pipeline, item workspace.Item) (workspace.Result, error) {
	r, err := p.Decide(ctx, item)
	if err == nil && r.Error != nil {
		err = r.Error
	}
	return r, err
}

// answer answers a request. A problem says why it cannot; the mistake is the request's, or nil.
func (form *decisionForm) answer(ctx context.Context, s *Server, body []byte, take func(context.Context, Pipeline, workspace.Item) (workspace.Result, error)) (any, *Problem, *decide.Mistake) {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	r, err := form.read(body)
	var wrong *decide.Mistake
	if errors.As(err, &wrong) {
		return nil, form.problem(wrong), wrong
	}
	p := s.asked(r.Model)
	if p == nil {
		return nil, newProblem(http.StatusNotFound, unknownModel(r.Model).Message), nil
	}
	status := p.Status()
	if !status.Ready {
		return nil, problemOf(ctx, workspace.Result{}, live.ErrStarting), nil
	}
	if r.Item.ID == "" {
		r.Item.ID = "1"
	}
	m := decide.Model{
		Labels: status.Labels, Described: status.Described, Form: status.Form, Embed: p.Embed,
		Decide: func(ctx context.Context, item workspace.Item) (workspace.Result, error) { return take(ctx, p, item) },
	}
	answers, used, err := m.Answer(ctx, r)
	switch {
	case errors.As(err, &wrong):
		return nil, form.problem(wrong), wrong
	case err != nil:
		problem := problemOf(ctx, workspace.Result{}, err)
		if problem.Status == http.StatusUnprocessableEntity {
			wrong = &decide.Mistake{At: []any{form.state}, Type: decide.Wrong, Message: problem.Detail}
		}
		return nil, problem, wrong
	}
	return form.write(p.Name(), r, answers, used), nil, nil
}

// problem converts a mistake to a Problem.
func (form *decisionForm) problem(m *decide.Mistake) *Problem {
	status := form.mistaken
	if m.Type == decide.NotLabel {
		status = http.StatusUnprocessableEntity
	}
	return newProblem(status, m.Error())
}

// refusal answers with a problem in the form. The mistake is the request's, or nil.
func (form *decisionForm) refusal(p *Problem, m *decide.Mistake) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for name, values := range p.GetHeaders() {
			w.Header()[name] = values
		}
		writeJSON(w, "application/json", p.Status, form.fail(p, m))
	})
}

// decisionsFailure returns an error in OpenAI's form.
func decisionsFailure(p *Problem, m *decide.Mistake) any {
	f := refusalOf(p)
	switch {
	case m != nil && len(m.At) > 0:
		param := m.Path()
		f.Param, f.Message = &param, m.Message
	case p.Status == http.StatusNotFound:
		param, code := "model", "model_not_found"
		f.Param, f.Code = &param, &code
	}
	return refused{f}
}

// systemOneError is TypeSafe's error: detail is a list of mistakes, or an object.
type systemOneError struct {
	Detail any `json:"detail" doc:"A list of mistakes with loc, msg and type; or an object with error_type and message"`
}

type systemOneMistake struct {
	At      []any  `json:"loc"`
	Message string `json:"msg"`
	Type    string `json:"type"`
}

type systemOneProblem struct {
	Type    string `json:"error_type"`
	Message string `json:"message"`
}

func systemOneFailure(p *Problem, m *decide.Mistake) any {
	if m != nil {
		return systemOneError{[]systemOneMistake{{append([]any{"body"}, m.At...), m.Message, m.Type}}}
	}
	kind := map[int]string{
		http.StatusUnauthorized: "authentication_error", http.StatusNotFound: "not_found_error", http.StatusTooManyRequests: "rate_limit_error",
		http.StatusServiceUnavailable: "overloaded_error",
	}[p.Status]
	switch {
	case kind != "":
	case p.Status < http.StatusInternalServerError:
		kind = "invalid_request_error"
	default:
		kind = "api_error"
	}
	return systemOneError{systemOneProblem{kind, p.Detail}}
}
