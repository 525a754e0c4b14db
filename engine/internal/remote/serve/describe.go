package serve

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"strconv"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/run/result"
	"github.com/racflow/racflow/engine/internal/show/page"
)

// This file describes the whole interface in OpenAPI 3.1, which GET /openapi.json returns and GET /docs
// shows to people. The schemas come from the types that are sent. A route is registered by handle or
// by huma.Register, and both describe it, so none is left out.

// tags group the operations.
var tags = []*huma.Tag{
	{Name: "items", Description: "Take texts through a pipeline"},
	{Name: "pipelines", Description: "List pipelines and rebuild their knowledge"},
	{Name: "chat", Description: "The chat completions of OpenAI, where a pipeline is a model"},
	{Name: "agents", Description: "The Model Context Protocol, where a pipeline is a tool"},
	{Name: "server", Description: "How the server is doing, and this description"},
}

func init() {
	huma.DefaultArrayNullable = false // a list without elements is sent as []
}

// document begins the description of the server: the schemas of types that make their JSON
// themselves, and how callers show who they are.
func document() *huma.OpenAPI {
	schemas := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	schemas.RegisterTypeAlias(reflect.TypeFor[result.Answer](), reflect.TypeFor[*string]()) // null: there is none
	schemas.RegisterTypeAlias(reflect.TypeFor[result.Fields](), reflect.TypeFor[map[string]any]())
	return &huma.OpenAPI{
		OpenAPI: "3.1.0", Tags: tags, Servers: []*huma.Server{{URL: "/"}},
		Info: &huma.Info{
			Title: "racflow", Version: engine.Version(), License: &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
			Description: "Pipelines that classify texts, find passages and answer questions. A request that cannot be served is answered with a problem document (RFC 9457).",
		},
		Components: &huma.Components{Schemas: schemas, SecuritySchemes: map[string]*huma.SecurityScheme{
			"token": {Type: "http", Scheme: "bearer", Description: "One of the tokens that the server was started with; it takes none where it was started without"},
		}},
		Security: []map[string][]string{{"token": {}}, {}},
	}
}

// public is the security of operations that take no token.
var public = []map[string][]string{{}}

// handle serves a route that huma does not serve, and describes it.
func (s *Server) handle(op huma.Operation, h http.Handler) {
	s.mux.Handle(op.Method+" "+op.Path, h)
	s.api.OpenAPI().AddOperation(&op)
}

// schema is that of a type, which the description names.
func schema[T any](s *Server) *huma.Schema {
	return s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[T](), true, "")
}

// as is content of one media type.
func as(mediaType string, schema *huma.Schema) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{mediaType: {Schema: schema}}
}

// asText is content that is no JSON.
func asText(mediaType string) map[string]*huma.MediaType {
	return as(mediaType, &huma.Schema{Type: huma.TypeString})
}

// asEvents is content of server-sent events, whose data is JSON.
func asEvents(description string, each *huma.Schema) *huma.MediaType {
	return &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeArray, Description: description, Items: each}}
}

// described are responses by status. Their content may be nil.
func described(content map[string]*huma.MediaType, codes ...int) map[string]*huma.Response {
	all := map[string]*huma.Response{}
	for _, code := range codes {
		all[strconv.Itoa(code)] = &huma.Response{Description: http.StatusText(code), Content: maps.Clone(content)}
	}
	return all
}

// description is the document as JSON, once all routes are registered.
func (s *Server) description() ([]byte, error) {
	d := s.api.OpenAPI()
	for _, path := range d.Paths {
		for _, op := range []*huma.Operation{path.Get, path.Post} {
			if op != nil {
				s.guarded(op)
			}
		}
	}
	return json.Marshal(d)
}

// guarded adds what the guard answers in place of an operation, and what a panic becomes.
func (s *Server) guarded(op *huma.Operation) {
	codes := []int{http.StatusForbidden, http.StatusMisdirectedRequest, http.StatusInternalServerError}
	if !reflect.DeepEqual(op.Security, public) {
		codes = append(codes, http.StatusUnauthorized, http.StatusTooManyRequests)
	}
	if op.RequestBody != nil {
		codes = append(codes, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	for code, r := range described(as(ProblemContentType, schema[Problem](s)), codes...) {
		if had := op.Responses[code]; had != nil {
			maps.Copy(r.Content, had.Content)
		}
		op.Responses[code] = r
	}
}

// describe registers the description, as JSON and as a page.
func (s *Server) describe() {
	content := sync.OnceValues(s.description)
	shown := sync.OnceValues(func() ([]byte, error) {
		text, err := content()
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		err = page.Docs("HTTP interface", text).Write(&b)
		return b.Bytes(), err
	})
	send := func(contentType string, text func() ([]byte, error)) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			body, err := text()
			if err != nil {
				panic(err) // the guard reports it
			}
			w.Header().Set("Content-Type", contentType)
			w.Header().Set("Content-Security-Policy", "frame-ancestors 'none'") // which a page cannot say of itself
			_, _ = w.Write(body)                                                // the client may be gone
		})
	}
	s.handle(huma.Operation{
		OperationID: "describe", Method: http.MethodGet, Path: "/openapi.json", Summary: "Describe the interface in OpenAPI 3.1", Tags: []string{"server"},
		Responses: described(as("application/openapi+json", &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}), http.StatusOK),
	}, send("application/openapi+json", content))
	s.handle(huma.Operation{
		OperationID: "showDescription", Method: http.MethodGet, Path: "/docs", Summary: "Show the interface to people", Tags: []string{"server"},
		Responses: described(asText("text/html"), http.StatusOK),
	}, send("text/html; charset=utf-8", shown))
}
