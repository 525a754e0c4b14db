package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/serve/live"
	"github.com/racflow/racflow/engine/internal/source/rows"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
)

// Item is the input of a pipeline.
type Item struct {
	ID    string         `json:"id,omitempty" doc:"Comes back with the result; if it is missing, the number of its line, or 1"`
	Text  string         `json:"text" doc:"UTF-8, at most 1 MiB"`
	Label string         `json:"label,omitempty" doc:"The answer that is expected; it comes back with the result as expected"`
	Meta  map[string]any `json:"meta,omitempty" doc:"Metadata that prompts and rules of the pipeline may use"`
}

// item converts the Item of a line.
func (i Item) item(line int) workspace.Item {
	if i.ID == "" {
		i.ID = strconv.Itoa(line)
	}
	return workspace.Item{ID: i.ID, Text: i.Text, Label: i.Label, Meta: sdk.Meta(i.Meta)}
}

// found is the result of a retrieval: the candidates of an item.
type found struct {
	ID         string                `json:"id"`
	Candidates []workspace.Candidate `json:"candidates" doc:"Best first"`
	Error      *result.Failure       `json:"error,omitempty" doc:"In batches: why there are no candidates"`
}

type itemRequest struct {
	Name   string `path:"name" doc:"The pipeline"`
	Accept string `header:"Accept" hidden:"true"`
	Trace  string `header:"traceparent" doc:"The trace that the request is part of, as W3C Trace Context has it"` // package telemetry reads it
	Body   Item
}

// items registers the routes that take items, alone or in batches.
func (s *Server) items() {
	answer := operation[workspace.Result](s, "answer", "Take an item through the pipeline", s.answerLine)
	responses(answer.Responses).and(s.events(), http.StatusOK)
	huma.Register(s.api, answer, func(ctx context.Context, in *itemRequest) (*huma.StreamResponse, error) {
		p := s.pipelines.Named(in.Name)
		switch {
		case p == nil:
			return nil, unknown(in.Name)
		case accepts(in.Accept, "text/event-stream"):
			return s.stream(p, in.Body.item(1)), nil
		}
		ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
		defer cancel()
		r, err := p.Answer(ctx, in.Body.item(1))
		return respond(ctx, r, r, err)
	})
	find := operation[found](s, "retrieve", "Return what the last retrieve or rerank stage leaves for an item", s.retrieveLine)
	huma.Register(s.api, find, func(ctx context.Context, in *itemRequest) (*huma.StreamResponse, error) {
		p := s.pipelines.Named(in.Name)
		if p == nil {
			return nil, unknown(in.Name)
		}
		if len(p.Definition().Knowledge()) == 0 {
			return nil, newProblem(http.StatusNotFound, "the pipeline "+in.Name+" retrieves nothing: it has no retrieve block that is used")
		}
		ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
		defer cancel()
		found, err := retrieve(ctx, p, in.Body.item(1))
		return respond(ctx, found, workspace.Result{}, err)
	})
}

// retrieve calls the pipeline's Retrieve, and puts an error of the item into its result.
func retrieve(ctx context.Context, p Pipeline, item workspace.Item) (found, error) {
	f := found{ID: item.ID, Candidates: []workspace.Candidate{}}
	if err := item.Row(1).Err; err != nil {
		return f, &result.Failure{Message: err.Error()}
	}
	candidates, err := p.Retrieve(ctx, item)
	if candidates != nil {
		f.Candidates = candidates
	}
	return f, err
}

// operation describes a route on items with results of type Result. It handles batches before huma
// reads the body, and calls answer for each line.
func operation[Result any](s *Server, verb, summary string, answer lineAnswer) huma.Operation {
	item, out := schema[Item](s), schema[Result](s)
	lines := func(description string, of *huma.Schema) *huma.MediaType {
		return &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary", Description: description}, Extensions: map[string]any{"x-itemSchema": of}}
	}
	return huma.Operation{
		OperationID: verb, Method: http.MethodPost, Path: "/v1/pipelines/{name}/" + verb, Summary: summary, Tags: []string{"items"},
		Description: "A body of JSON is one item. A body of the type " + linesType + " or " + bytesType + " is a batch of any length, one item a line; the results come in its order, one a line, while it is sent.",
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{bytesType: lines("A batch: an item a line", item)}},
		Responses:   map[string]*huma.Response{"200": {Content: map[string]*huma.MediaType{"application/json": {Schema: out}, linesType: lines("The results of a batch, one a line", out)}}},
		Errors: []int{
			http.StatusBadRequest, http.StatusNotFound, http.StatusRequestTimeout, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
		},
		MaxBodyBytes: -1, BodyReadTimeout: -1, // the guard limits both
		Middlewares: huma.Middlewares{func(ctx huma.Context, next func(huma.Context)) {
			r, w := humago.Unwrap(ctx)
			if isLines(r) {
				s.itemBatch(w, r, answer)
				return
			}
			if _, p := readJSON(r); p != nil {
				p.ServeHTTP(w, r)
				return
			}
			next(ctx)
		}},
	}
}

// respond answers with a value, or with the problem in the result.
func respond(ctx context.Context, value any, r workspace.Result, err error) (*huma.StreamResponse, error) {
	if p := problemOf(ctx, r, err); p != nil {
		return nil, p
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		_, w := humago.Unwrap(ctx)
		writeJSON(w, "application/json", http.StatusOK, value)
	}}, nil
}

// readJSON reads a body, and resets it so that it can be read again. The problem says at which
// position the body is not JSON in UTF-8. Decoders do not report the position, and replace invalid
// bytes.
func readJSON(r *http.Request) ([]byte, *Problem) {
	content, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, unreadableBody(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(content))
	kind, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	at, err := mistake(content, params["charset"])
	var syntax *json.SyntaxError
	if err == nil || errors.As(err, &syntax) && (len(content) == 0 || kind != "application/json") { // others report these
		return content, nil
	}
	line, begins := bytes.Count(content[:at], []byte("\n"))+1, bytes.LastIndexByte(content[:at], '\n')+1
	return nil, newProblem(http.StatusBadRequest, fmt.Sprintf("the body is not JSON: line %d, column %d: %v", line, column(content[begins:], at-begins), err))
}

// column returns the number of the character that a byte of a line belongs to.
func column(line []byte, at int) int { return utf8.RuneCount(line[:at]) + 1 }

// mistake returns why a text is not JSON in UTF-8, and the position of the invalid byte. charset is
// the sender's name of the encoding; empty: none.
func mistake(content []byte, charset string) (at int, err error) {
	if utf8.Valid(content) {
		var syntax *json.SyntaxError
		if errors.As(json.Unmarshal(content, new(json.RawMessage)), &syntax) {
			return int(max(syntax.Offset, 1)) - 1, syntax
		}
		return 0, nil
	}
	for r, size := utf8.DecodeRune(content); r != utf8.RuneError || size > 1; r, size = utf8.DecodeRune(content[at:]) {
		at += size
	}
	if charset == "" || strings.EqualFold(charset, "utf-8") {
		return at, errNotUTF8
	}
	return at, fmt.Errorf("%w but, by its Content-Type, %s: %w", errNotUTF8, charset, rows.ErrEncoding)
}

var errNotUTF8 = errors.New("it is not UTF-8")

// linesType is the media type of batches. Equivalent types are accepted, too, such as bytesType,
// which generated clients can send.
const linesType, bytesType = "application/x-ndjson", "application/octet-stream"

var linesTypes = []string{linesType, bytesType, "application/ndjson", "application/jsonl", "application/x-jsonlines"}

func isLines(r *http.Request) bool {
	t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && slices.Contains(linesTypes, t)
}

// accepts reports whether an Accept header contains a media type.
func accepts(header, wanted string) bool {
	for one := range strings.SplitSeq(header, ",") {
		if t, params, err := mime.ParseMediaType(strings.TrimSpace(one)); err == nil && t == wanted && params["q"] != "0" {
			return true
		}
	}
	return false
}

// Errors that huma finds in a request become Problems like all others. huma would quote the faulty
// part, which may be long.
func init() {
	huma.NewError = func(status int, text string, found ...error) huma.StatusError {
		p := newProblem(status, text)
		for _, err := range found {
			var detail *huma.ErrorDetail
			switch {
			case errors.As(err, &detail):
				p.Errors = append(p.Errors, problemDetail{Message: detail.Message, Location: detail.Location})
			case err != nil:
				p.Errors = append(p.Errors, problemDetail{Message: err.Error()})
			}
		}
		return p
	}
	huma.DefaultArrayNullable = false // a list without elements is sent as []
}

// problemOf returns why an item has no answer, from its result or err; nil: it has one. All
// interfaces of a server use it.
func problemOf(ctx context.Context, r workspace.Result, err error) *Problem {
	var failed *result.Failure
	var stage *outcome.Failure
	switch {
	case err == nil && r.Error == nil:
		return nil
	case errors.Is(err, live.ErrBusy):
		return later(http.StatusTooManyRequests, time.Second, "as many requests as may wait for this pipeline do already")
	case errors.Is(err, live.ErrStarting):
		return later(http.StatusServiceUnavailable, 2*time.Second, "the pipeline is starting: GET /readyz says when it is ready")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(ctx.Err(), context.DeadlineExceeded):
		return newProblem(http.StatusGatewayTimeout, "the answer took longer than this server waits for one")
	case errors.Is(err, context.Canceled), ctx.Err() != nil:
		return newProblem(http.StatusServiceUnavailable, "the server is ending")
	case errors.As(err, &failed), errors.As(err, &stage):
		failed = failure(err)
	case err != nil:
		return later(http.StatusServiceUnavailable, 5*time.Second, err.Error())
	default:
		failed = r.Error
	}
	p := newProblem(http.StatusUnprocessableEntity, failed.Error())
	if p.Stage = failed.Stage; p.Stage != "" {
		p.Status, p.Title = http.StatusBadGateway, http.StatusText(http.StatusBadGateway)
	}
	return p
}

func later(status int, after time.Duration, detail string) *Problem {
	p := newProblem(status, detail)
	p.RetryAfter = after
	return p
}

func unknown(name string) *Problem {
	return newProblem(http.StatusNotFound, "there is no pipeline "+name+": GET /v1/pipelines lists those that there are")
}

// event reports what a stage did for an item.
type event struct {
	Stage      string                `json:"stage" doc:"Such as retrieve.neighbours"`
	Seconds    float64               `json:"seconds" doc:"How long it took"`
	Candidates []workspace.Candidate `json:"candidates,omitempty" doc:"What it left to those below it, best first"`
	Votes      []result.Vote         `json:"votes,omitempty"`
	Skipped    string                `json:"skipped,omitempty" doc:"Why it was not asked"`
}

// stream answers an item with events. Until the response has begun, an error gets the usual error
// response.
func (s *Server) stream(p Pipeline, item workspace.Item) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		r, w := humago.Unwrap(hc)
		ctx, cancel := context.WithTimeout(r.Context(), s.options.Timeout)
		defer cancel()
		out := newEventWriter(w, cancel)
		answered, failed := p.Follow(ctx, item, func(e live.Event) {
			out.Send("stage", event{e.Stage, e.Took.Seconds(), e.Candidates, e.Votes, e.Skipped})
		})
		begun := out.End()
		problem := problemOf(ctx, answered, failed)
		switch {
		case problem == nil:
			out.Send("result", answered)
		case begun:
			out.Send("error", problem)
		default:
			problem.ServeHTTP(w, r)
		}
	}}
}

// events describes the events.
func (s *Server) events() map[string]*huma.MediaType {
	var kinds []*huma.Schema
	for _, kind := range []struct {
		name string
		data *huma.Schema
	}{{"stage", schema[event](s)}, {"result", schema[workspace.Result](s)}, {"error", schema[Problem](s)}} {
		kinds = append(kinds, &huma.Schema{Type: huma.TypeObject, Required: []string{"event", "data"}, Properties: map[string]*huma.Schema{
			"event": {Type: huma.TypeString, Enum: []any{kind.name}},
			"data":  kind.data,
		}})
	}
	return asEvents("Events, for Accept: text/event-stream", &huma.Schema{OneOf: kinds})
}
