package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/engine/serve/guard"
	"github.com/racflow/racflow/sdk"
)

// Item is what a pipeline is asked about.
type Item struct {
	ID    string         `json:"id,omitempty" doc:"Comes back with the result; if it is missing, the number of its line, or 1"`
	Text  string         `json:"text" doc:"UTF-8, at most 1 MiB"`
	Label string         `json:"label,omitempty" doc:"The answer that is expected; it comes back with the result as expected"`
	Meta  map[string]any `json:"meta,omitempty" doc:"Metadata that prompts and rules of the pipeline may use"`
}

// item is the one of a line.
func (i Item) item(line int) engine.Item {
	if i.ID == "" {
		i.ID = strconv.Itoa(line)
	}
	return engine.Item{ID: i.ID, Text: i.Text, Label: i.Label, Meta: sdk.Meta(i.Meta)}
}

// Found is what was retrieved for an item.
type Found struct {
	ID         string             `json:"id"`
	Candidates []engine.Candidate `json:"candidates" doc:"Best first"`
	Error      *result.Failure    `json:"error,omitempty" doc:"In batches: why there are no candidates"`
}

type itemRequest struct {
	Name   string `path:"name" doc:"The pipeline"`
	Accept string `header:"Accept" hidden:"true"`
	Body   Item
}

// items registers what takes items, alone or in batches.
func (s *Server) items() {
	answer := operation[engine.Result](s, "answer", "Take an item through the pipeline", s.answerLine)
	answer.Responses["200"].Content["text/event-stream"] = &huma.MediaType{Schema: s.events()}
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
	find := operation[Found](s, "retrieve", "Return what the last retrieve or rerank stage leaves for an item", s.retrieveLine)
	huma.Register(s.api, find, func(ctx context.Context, in *itemRequest) (*huma.StreamResponse, error) {
		p := s.pipelines.Named(in.Name)
		if p == nil {
			return nil, unknown(in.Name)
		}
		if len(p.Definition().Knowledge()) == 0 {
			return nil, guard.NewProblem(http.StatusNotFound, "the pipeline "+in.Name+" retrieves nothing: it has no retrieve block that is used")
		}
		ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
		defer cancel()
		found, err := retrieve(ctx, p, in.Body.item(1))
		return respond(ctx, found, engine.Result{}, err)
	})
}

// retrieve is a pipeline's method, with errors of the item as a result has them.
func retrieve(ctx context.Context, p Pipeline, item engine.Item) (Found, error) {
	f := Found{ID: item.ID, Candidates: []engine.Candidate{}}
	if err := item.Row(1).Err; err != nil {
		return f, &result.Failure{Message: err.Error()}
	}
	candidates, err := p.Retrieve(ctx, item)
	if candidates != nil {
		f.Candidates = candidates
	}
	return f, err
}

// operation describes one on items whose results are Results. A batch is handled before
// huma reads the body, each line by answer.
func operation[Result any](s *Server, verb, summary string, answer lineAnswer) huma.Operation {
	schemas := s.api.OpenAPI().Components.Schemas
	item, out := schemas.Schema(reflect.TypeFor[Item](), true, ""), schemas.Schema(reflect.TypeFor[Result](), true, "")
	lines := func(of *huma.Schema) *huma.MediaType {
		return &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Description: "One JSON value a line"}, Extensions: map[string]any{"itemSchema": of}}
	}
	return huma.Operation{
		OperationID: verb, Method: http.MethodPost, Path: "/v1/pipelines/{name}/" + verb, Summary: summary, Tags: []string{"items"},
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{linesType: lines(item)}},
		Responses:   map[string]*huma.Response{"200": {Content: map[string]*huma.MediaType{"application/json": {Schema: out}, linesType: lines(out)}}},
		Errors: []int{
			http.StatusBadRequest, http.StatusUnauthorized, http.StatusNotFound, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
			http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
		},
		MaxBodyBytes: -1, BodyReadTimeout: -1, // the guard bounds both
		Middlewares: huma.Middlewares{func(ctx huma.Context, next func(huma.Context)) {
			r, w := humago.Unwrap(ctx)
			if isLines(r) {
				s.batch(w, r, answer)
				return
			}
			content, err := io.ReadAll(r.Body)
			if err != nil {
				guard.Unreadable(err).ServeHTTP(w, r)
				return
			}
			if !utf8.Valid(content) { // a JSON decoder would replace what is not
				guard.NewProblem(http.StatusBadRequest, errNotUTF8.Error()).ServeHTTP(w, r)
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(content))
			next(ctx)
		}},
	}
}

// respond answers with a value, or with the problem that the result has.
func respond(ctx context.Context, value any, r engine.Result, err error) (*huma.StreamResponse, error) {
	if p := ProblemOf(ctx, r, err); p != nil {
		return nil, p
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		ctx.SetHeader("Content-Type", "application/json")
		enc := json.NewEncoder(ctx.BodyWriter())
		enc.SetEscapeHTML(false)
		_ = enc.Encode(value) // the client may be gone
	}}, nil
}

var errNotUTF8 = errors.New("it is not UTF-8")

// linesType is the media type of batches. Others that mean the same are taken as well.
const linesType = "application/x-ndjson"

var linesTypes = []string{linesType, "application/ndjson", "application/jsonl", "application/x-jsonlines"}

func isLines(r *http.Request) bool {
	t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && slices.Contains(linesTypes, t)
}

// accepts reports whether a media type is named among those of an Accept header.
func accepts(header, wanted string) bool {
	for one := range strings.SplitSeq(header, ",") {
		if t, params, err := mime.ParseMediaType(strings.TrimSpace(one)); err == nil && t == wanted && params["q"] != "0" {
			return true
		}
	}
	return false
}
