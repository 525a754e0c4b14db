package serve

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/racflow/racflow/engine/internal/show/page"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/engine/result"
)

// This file describes the whole interface in OpenAPI 3.1: GET /openapi.json returns it, and GET
// /docs shows it to people. It derives the schemas from the types that are sent. Routes are
// registered with handle or huma.Register, which describe them.

var tags = []*huma.Tag{
	{Name: "items", Description: "Answer texts by a pipeline"},
	{Name: "pipelines", Description: "List pipelines and rebuild their knowledge"},
	{Name: "chat", Description: "The chat completions of OpenAI, where a pipeline is a model"},
	{Name: "decisions", Description: "Typed questions about a text, in the forms of TypeSafe and OpenAI, where a pipeline is the model"},
	{Name: "agents", Description: "The Model Context Protocol, where a pipeline is a tool"},
	{Name: "server", Description: "How the server is doing, and this description"},
}

// document starts the description of the server, with the schemas of types that have their own JSON
// encoding, and with the authentication.
func document() *huma.OpenAPI {
	schemas := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	schemas.RegisterTypeAlias(reflect.TypeFor[result.Answer](), reflect.TypeFor[*string]()) // null: there is none
	schemas.RegisterTypeAlias(reflect.TypeFor[result.Fields](), reflect.TypeFor[map[string]any]())
	return &huma.OpenAPI{
		OpenAPI: "3.1.0", Tags: tags, Servers: []*huma.Server{{URL: "/"}},
		Info: &huma.Info{Title: "racflow", Version: workspace.Version(), License: &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
			Description: "Pipelines that classify texts, find passages and answer questions. A request that cannot be served is answered with a problem document (RFC 9457)."},
		Components: &huma.Components{Schemas: schemas, SecuritySchemes: map[string]*huma.SecurityScheme{
			"token": {Type: "http", Scheme: "bearer", Description: "One of the tokens that the server was started with; it takes none where it was started without"},
		}},
		Security: []map[string][]string{{"token": {}}, {}},
	}
}

// routes is a mux that lists its patterns; a test compares them with the description.
type routes struct {
	http.ServeMux
	patterns []string
}

// HandleFunc registers a function, as huma does.
func (r *routes) HandleFunc(pattern string, h func(http.ResponseWriter, *http.Request)) {
	r.patterns = append(r.patterns, pattern)
	r.ServeMux.HandleFunc(pattern, h)
}

// handle serves and describes a route that huma does not serve.
func (s *Server) handle(op huma.Operation, h http.Handler) {
	s.mux.HandleFunc(op.Method+" "+op.Path, h.ServeHTTP)
	if slices.Contains(s.options.Guard.Public, op.Path) {
		op.Security = []map[string][]string{{}}
	}
	s.api.OpenAPI().AddOperation(&op)
}

// get is handle for GET routes without parameters.
func (s *Server) get(path, id, tag, summary string, r responses, h http.HandlerFunc) {
	s.handle(huma.Operation{OperationID: id, Method: http.MethodGet, Path: path, Summary: summary, Tags: []string{tag}, Responses: r}, h)
}

// schema returns the schema of a type, and names it in the description.
func schema[T any](s *Server) *huma.Schema {
	return s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[T](), true, "")
}

// as describes content of one media type.
func as(mediaType string, schema *huma.Schema) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{mediaType: {Schema: schema}}
}

// asText describes content that is not JSON.
func asText(mediaType string) map[string]*huma.MediaType {
	return as(mediaType, &huma.Schema{Type: huma.TypeString})
}

// asEvents describes server-sent events with JSON data.
func asEvents(description string, each *huma.Schema) map[string]*huma.MediaType {
	return as("text/event-stream", &huma.Schema{Type: huma.TypeArray, Description: description, Items: each})
}

// responses are the responses of an operation, by status.
type responses map[string]*huma.Response

// and adds statuses with content, which may be nil.
func (r responses) and(content map[string]*huma.MediaType, codes ...int) responses {
	for _, code := range codes {
		one := r[strconv.Itoa(code)]
		if one == nil {
			one = &huma.Response{Description: http.StatusText(code), Content: map[string]*huma.MediaType{}}
			r[strconv.Itoa(code)] = one
		}
		maps.Copy(one.Content, content)
	}
	return r
}

// description returns the document as JSON; call it after all routes are registered. It adds the
// guard's responses to every operation, including the response after a panic.
func (s *Server) description() []byte {
	d := s.api.OpenAPI()
	for _, path := range d.Paths {
		op := cmp.Or(path.Get, path.Post) // no path has both
		codes := []int{http.StatusForbidden, http.StatusMisdirectedRequest, http.StatusInternalServerError}
		if op.Security == nil {
			codes = append(codes, http.StatusUnauthorized, http.StatusTooManyRequests)
		}
		if op.RequestBody != nil {
			codes = append(codes, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
		}
		responses(op.Responses).and(as(problemContentType, schema[Problem](s)), codes...)
	}
	text, err := json.Marshal(d)
	if err != nil {
		panic(err) // the guard reports the panic
	}
	return text
}

// describe registers the description, as JSON and as a page.
func (s *Server) describe() {
	content := sync.OnceValue(s.description)
	shown := sync.OnceValue(func() []byte {
		var b bytes.Buffer
		if err := page.Docs("HTTP interface", content()).Write(&b); err != nil {
			panic(err)
		}
		return b.Bytes()
	})
	send := func(contentType string, text func() []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.Header().Set("Content-Security-Policy", "frame-ancestors 'none'") // a page cannot set this itself
			_, _ = w.Write(text())                                              // the client may have disconnected
		}
	}
	document := as("application/openapi+json", &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true})
	s.get("/openapi.json", "describe", "server", "Describe the interface in OpenAPI 3.1", responses{}.and(document, http.StatusOK), send("application/openapi+json", content))
	s.get("/docs", "showDescription", "server", "Show the interface to people", responses{}.and(asText("text/html"), http.StatusOK), send("text/html; charset=utf-8", shown))
}
