package serve

import (
	"encoding/json"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/racflow/racflow/engine/internal/show/telemetry"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// asked has requests by operation, at least one for each.
var asked = map[string][]struct {
	method, path, body string
	header             []string // besides the content type
	status             int
}{
	"health":          {{method: "GET", path: "/healthz", status: 200}},
	"ready":           {{method: "GET", path: "/readyz", status: 200}},
	"metrics":         {{method: "GET", path: "/metrics", status: 200}},
	"describe":        {{method: "GET", path: "/openapi.json", status: 200}},
	"showDescription": {{method: "GET", path: "/docs", status: 200}},
	"listPipelines":   {{method: "GET", path: "/v1/pipelines", status: 200}},
	"getPipeline":     {{method: "GET", path: "/v1/pipelines/p", status: 200}, {method: "GET", path: "/v1/pipelines/q", status: 404}},
	"rebuild":         {{method: "POST", path: "/v1/pipelines/p/rebuild", status: 202}, {method: "POST", path: "/v1/pipelines/p/rebuild?wait=true", status: 200}, {method: "POST", path: "/v1/pipelines/q/rebuild", status: 404}},
	"answer": {
		{method: "POST", path: "/v1/pipelines/p/answer", body: `{"text": "a", "meta": {"x": 1}}`, status: 200},
		{method: "POST", path: "/v1/pipelines/p/answer", body: `{"text": "a"}`, header: []string{"Accept", "text/event-stream"}, status: 200},
		{method: "POST", path: "/v1/pipelines/p/answer", body: "{\"text\": \"a\"}\n{", header: []string{"Content-Type", linesType}, status: 200},
		{method: "POST", path: "/v1/pipelines/p/answer", body: "{\"text\": \"a\"}\n{", header: []string{"Content-Type", bytesType}, status: 200},
		{method: "POST", path: "/v1/pipelines/p/answer", body: `{"text": 7}`, status: 422},
		{method: "POST", path: "/v1/pipelines/p/answer", body: `{`, status: 400},
		{method: "POST", path: "/v1/pipelines/p/answer", body: `a`, header: []string{"Content-Type", "image/png"}, status: 415},
		{method: "POST", path: "/v1/pipelines/p/answer", body: `"` + strings.Repeat("a", 1<<11) + `"`, status: 413},
		{method: "POST", path: "/v1/pipelines/p/answer", body: `{"text": "a"}`, header: []string{"Origin", "https://example.com", "Sec-Fetch-Site", "cross-site"}, status: 403},
	},
	"retrieve": {
		{method: "POST", path: "/v1/pipelines/p/retrieve", body: `{"text": "a"}`, status: 200},
		{method: "POST", path: "/v1/pipelines/q/retrieve", body: `{"text": "a"}`, status: 404},
	},
	"createChatCompletion": {
		{method: "POST", path: "/v1/chat/completions", body: `{"model": "p", "messages": [{"role": "user", "content": "a"}], "temperature": 0}`, status: 200},
		{method: "POST", path: "/v1/chat/completions", body: `{"model": "p", "stream": true, "messages": [{"role": "user", "content": "a"}]}`, status: 200},
		{method: "POST", path: "/v1/chat/completions", body: `{"model": "q", "messages": [{"role": "user", "content": "a"}]}`, status: 404},
		{method: "POST", path: "/v1/chat/completions", body: `{"model": "p", "messages": []}`, status: 400},
		{method: "POST", path: "/v1/chat/completions", body: `{"model": "p"}`, header: []string{"Content-Encoding", "gzip"}, status: 415},
	},
	"askSystemOne": {
		{method: "POST", path: "/v1/systemone", body: `{"model": "p", "state": "a", "questions": {"q": {"type": "choice", "criteria": {"a": null, "b": null}}}}`, status: 200},
		{method: "POST", path: "/v1/systemone", body: "{\"model\": \"p\", \"state\": \"a\", \"questions\": {\"q\": {\"type\": \"noul\", \"instructions\": \"x\"}}}\n{", header: []string{"Content-Type", linesType}, status: 200},
		{method: "POST", path: "/v1/systemone", body: `{"model": "p", "state": "a", "questions": {}}`, status: 422},
		{method: "POST", path: "/v1/systemone", body: `{"model": "q", "state": "a", "questions": {"q": {"type": "noul", "instructions": "x"}}}`, status: 404},
		{method: "POST", path: "/v1/systemone", body: `"` + strings.Repeat("a", 1<<11) + `"`, status: 413},
		{method: "POST", path: "/v1/systemone", body: `{}`, header: []string{"Content-Encoding", "gzip"}, status: 415},
	},
	"createDecision": {
		{method: "POST", path: "/v1/decisions", body: `{"model": "p", "input": "a", "questions": [{"type": "choice", "choices": [{"value": "a"}, {"value": true}]}, {"type": "predicate", "instructions": "x", "name": "n"}]}`, status: 200},
		{method: "POST", path: "/v1/decisions", body: `{"model": "p", "input": "a", "questions": []}`, status: 400},
		{method: "POST", path: "/v1/decisions", body: `{`, status: 400},
	},
	"listModels": {{method: "GET", path: "/v1/models", status: 200}},
	"getModel":   {{method: "GET", path: "/v1/models/p", status: 200}, {method: "GET", path: "/v1/models/q", status: 404}},
	"callProtocol": {
		{method: "POST", path: "/mcp", body: `{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "p", "arguments": {"text": "a"}}}`, header: []string{"Accept", "application/json, text/event-stream"}, status: 200},
		{method: "POST", path: "/mcp", body: `{"jsonrpc": "2.0", "method": "notifications/initialized"}`, header: []string{"Accept", "application/json, text/event-stream"}, status: 202},
		{method: "POST", path: "/mcp", body: `{}`, status: 400},
		{method: "POST", path: "/mcp", body: `{}`, header: []string{"Content-Type", "text/plain"}, status: 415},
	},
}

// whole starts a server with all operations, and returns its description.
func whole(t *testing.T, tokens *Tokens) (s *Server, url string, operations map[string]*huma.Operation) {
	t.Helper()
	s, url = serving(t, Options{Telemetry: must.Get(telemetry.New(t.Context(), telemetry.Options{}))(t), Guard: GuardOptions{Tokens: tokens, Body: 1 << 10}}, newFake("p"))
	MountChat(s)
	MountDecisions(s)
	MountMCP(s, quiet)
	s.description()
	operations = map[string]*huma.Operation{}
	for path, item := range s.api.OpenAPI().Paths {
		for method, op := range map[string]*huma.Operation{"GET": item.Get, "POST": item.Post} {
			if op != nil {
				op.Method, op.Path = method, path
				operations[op.OperationID] = op
			}
		}
	}
	return s, url, operations
}

// TestDescription: all responses of the server match the description.
func TestDescription(t *testing.T) {
	s, url, operations := whole(t, nil)
	var paths []string
	for _, op := range operations {
		paths = append(paths, op.Method+" "+op.Path)
	}
	slices.Sort(paths)
	if served := slices.Sorted(slices.Values(s.mux.patterns)); !slices.Equal(served, paths) {
		t.Errorf("served are %q\nand described %q", served, paths)
	}
	for id, op := range operations {
		must.Equal(t, id+" is asked for; has one tag, a summary, a response 500, and no default", []any{true, 1, true, true, false},
			[]any{len(asked[id]) > 0, len(op.Tags), op.Summary != "", op.Responses["500"] != nil, op.Responses["default"] != nil})
		if tagged := slices.ContainsFunc(tags, func(tag *huma.Tag) bool { return slices.Contains(op.Tags, tag.Name) }); !tagged {
			t.Errorf("%s has tags that are not described: %q", id, op.Tags)
		}
	}
	for id, requests := range asked {
		op := operations[id]
		if op == nil {
			t.Errorf("%s is not described", id)
			continue
		}
		for _, q := range requests {
			name := id + " " + q.body
			if pattern := regexp.MustCompile(`\{\w+\}`).ReplaceAllString(op.Path, `[^/]+`); q.method != op.Method || !regexp.MustCompile("^"+pattern+"(\\?.*)?$").MatchString(q.path) {
				t.Errorf("%s is %s %s, and %s is asked", id, op.Method, op.Path, q.path)
			}
			r := request(t, q.method, url+q.path, q.body, slices.Concat([]string{"Content-Type", "application/json"}, q.header)...)
			response, text := send(t, r)
			if response.StatusCode != q.status {
				t.Errorf("%.80s: %s %s", name, response.Status, text)
				continue
			}
			if described := op.Responses[strconv.Itoa(q.status)]; described == nil {
				t.Errorf("%.80s: %s is not described", name, response.Status)
			} else if wrong := differs(s, described, response.Header.Get("Content-Type"), text); wrong != nil {
				t.Errorf("%.80s: %q is not as described: %v", name, text, wrong)
			}
		}
	}
}

// differs returns how a body differs from the description of a response.
func differs(s *Server, described *huma.Response, contentType, body string) []error {
	kind, _, _ := mime.ParseMediaType(contentType)
	content := described.Content[kind]
	schemas := s.api.OpenAPI().Components.Schemas
	check := func(schema *huma.Schema, text string) []error {
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			return []error{err}
		}
		schema.PrecomputeMessages() // huma does this only for schemas that it makes from types
		var found huma.ValidateResult
		huma.Validate(schemas, schema, huma.NewPathBuffer(nil, 0), huma.ModeReadFromServer, value, &found)
		return found.Errors
	}
	switch {
	case content == nil && len(described.Content)+len(body) == 0:
		return nil
	case content == nil:
		return []error{newProblem(0, "there is no content of the type "+kind)}
	case kind == "application/json" || strings.HasSuffix(kind, "+json"):
		return check(content.Schema, body)
	case kind == linesType:
		for line := range strings.Lines(body) {
			if wrong := check(content.Extensions["x-itemSchema"].(*huma.Schema), line); wrong != nil {
				return wrong
			}
		}
	case kind == "text/event-stream":
		for _, event := range strings.Split(strings.TrimSpace(body), "\n\n") {
			name, data, _ := strings.Cut(event, "data: ")
			if name = strings.TrimSpace(strings.TrimPrefix(name, "event: ")); name != "" {
				data = `{"event": "` + name + `", "data": ` + data + `}`
			}
			if wrong := check(content.Schema.Items, data); wrong != nil && data != "[DONE]" {
				return wrong
			}
		}
	}
	return nil
}

// TestDifferences: differences from the description are found.
func TestDifferences(t *testing.T) {
	s, _, operations := whole(t, nil)
	answer := operations["answer"].Responses["200"]
	for _, test := range []struct{ contentType, body string }{
		{"application/json", `{"id": "1"}`}, {"application/json", `[]`}, {linesType, "{}\n"}, {"text/event-stream", "event: other\ndata: {}\n\n"}, {"text/html", "<p>"},
	} {
		if differs(s, answer, test.contentType, test.body) == nil {
			t.Errorf("%s %q is as described", test.contentType, test.body)
		}
	}
}

// TestDescriptionToken: /docs and /openapi.json need a token like all non-public paths, and /docs loads nothing from
// elsewhere.
func TestDescriptionToken(t *testing.T) {
	const token = "0123456789abcdef"
	_, url, operations := whole(t, must.Get(NewTokens(token, "", nil))(t))
	for id, op := range operations {
		r := request(t, asked[id][0].method, url+asked[id][0].path, "")
		response, _ := send(t, r)
		if public := op.Responses["401"] == nil; public == (response.StatusCode == http.StatusUnauthorized) {
			t.Errorf("%s without a token: %s, and public is %t", id, response.Status, public)
		}
	}
	_, text := send(t, request(t, "GET", url+"/docs", "", "Authorization", "Bearer "+token))
	if !strings.Contains(text, "openapi-explorer") || strings.Contains(text, " src=\"http") || !strings.Contains(text, "default-src &#39;none&#39;") {
		t.Errorf("the page is %.2000s", text)
	}
}
