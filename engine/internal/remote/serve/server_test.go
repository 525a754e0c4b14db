package serve

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/racflow/racflow/engine"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestEnd: a server that ends says that it is not ready, lets requests end, and cuts off
// those that do not in time.
func TestEnd(t *testing.T) {
	for name, test := range map[string]struct {
		grace  time.Duration
		status int
		fails  bool
	}{
		"in time": {time.Hour, 200, false},
		"late":    {time.Millisecond, 503, true},
	} {
		p := newFake("p")
		begun, release := make(chan struct{}), make(chan struct{})
		p.To = func(ctx context.Context, i engine.Item) (engine.Result, error) {
			close(begun)
			select {
			case <-release:
			case <-ctx.Done():
				return engine.Result{}, ctx.Err()
			}
			return shout(ctx, i)
		}
		s := must.Get(New(func() []Pipeline { return []Pipeline{p} }, Options{Grace: test.grace, Timeout: time.Hour}))(t)
		l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		ctx, stop := context.WithCancel(t.Context())
		ended, answered := make(chan error), make(chan int)
		go func() { ended <- s.Serve(ctx, l) }()
		go func() {
			response, err := http.Post("http://"+l.Addr().String()+"/v1/pipelines/p/answer", "application/json", strings.NewReader(`{"text": "a"}`))
			if err != nil {
				t.Error(err)
				answered <- 0
				return
			}
			_ = response.Body.Close()
			answered <- response.StatusCode
		}()
		<-begun
		ready := func() (int, string) {
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
			return w.Code, w.Body.String()
		}
		if code, text := ready(); code != 200 || text != `{"status":"ready"}`+"\n" {
			t.Errorf("%s: %d %s", name, code, text)
		}
		stop()
		<-s.Ending()
		if code, text := ready(); code != 503 || text != `{"status":"ending"}`+"\n" {
			t.Errorf("%s: %d %s", name, code, text)
		}
		if !test.fails {
			close(release)
		}
		if status := <-answered; status != test.status {
			t.Errorf("%s: %d", name, status)
		}
		if err := <-ended; (err != nil) != test.fails {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHealth(t *testing.T) {
	p := newFake("p")
	all := must.Get(NewTokens("0123456789abcdef", "", nil))(t)
	s, url := serving(t, Options{Guard: GuardOptions{Tokens: all}}, p)
	s.Mount("GET /other/", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("other")) }))
	get := func(path, token string) (int, string) {
		r := request(t, http.MethodGet, url+path, "")
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		response, text := send(t, r)
		return response.StatusCode, text
	}
	p.State.Ready = false
	for _, test := range []struct {
		path, token string
		status      int
	}{
		{"/healthz", "", 200}, {"/readyz", "", 503}, {"/openapi.json", "", 401}, {"/v1/pipelines", "", 401}, {"/other/", "", 401}, {"/nothing", "", 401},
		{"/openapi.json", "0123456789abcdef", 200}, {"/v1/pipelines", "0123456789abcdef", 200}, {"/other/", "0123456789abcdef", 200}, {"/nothing", "0123456789abcdef", 404},
	} {
		if status, text := get(test.path, test.token); status != test.status {
			t.Errorf("%s: %d %s", test.path, status, text)
		}
	}
}

// TestDocument: OpenAPI has what the server does, with types as their JSON is.
func TestDocument(t *testing.T) {
	_, url := serving(t, Options{}, newFake("p"))
	response, err := http.Get(url + "/openapi.json")
	must.Do(t, err)
	defer response.Body.Close() //nolint:errcheck // it was only read
	var d struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			RequestBody struct{ Content map[string]any }
			Responses   map[string]struct{ Content map[string]any }
		}
		Components struct {
			Schemas map[string]struct {
				Required   []string
				Properties map[string]map[string]any
			}
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&d); err != nil || d.OpenAPI != "3.1.0" {
		t.Fatal(d.OpenAPI, err)
	}
	for path, method := range map[string]string{
		"/v1/pipelines": "get", "/v1/pipelines/{name}": "get", "/v1/pipelines/{name}/answer": "post",
		"/v1/pipelines/{name}/retrieve": "post", "/v1/pipelines/{name}/rebuild": "post",
	} {
		if _, ok := d.Paths[path][method]; !ok || len(d.Paths[path]) != 1 {
			t.Errorf("%s has %v", path, d.Paths[path])
		}
	}
	answer := d.Paths["/v1/pipelines/{name}/answer"]["post"]
	if got := answer.Responses["200"].Content; len(got) != 3 || got["text/event-stream"] == nil || got[linesType] == nil || len(answer.RequestBody.Content) != 2 || answer.Responses["504"].Content[ProblemContentType] == nil {
		t.Errorf("%+v", answer)
	}
	result := d.Components.Schemas["Result"].Properties
	if fields := result["fields"]["type"]; fields != "object" || len(result["votes"]) == 0 {
		t.Errorf("%+v", result)
	}
	if types, ok := result["answer"]["type"].([]any); !ok || len(types) != 2 || types[1] != "null" {
		t.Errorf("an answer is %v", result["answer"])
	}
	if d.Components.Schemas["Problem"].Properties["detail"] == nil || strings.Join(d.Components.Schemas["Item"].Required, " ") != "text" {
		t.Errorf("%+v", d.Components.Schemas)
	}
}

func TestManagement(t *testing.T) {
	p := newFake("p")
	p.State.Labels, p.State.Answers = []string{"a", "b"}, "labels"
	_, url := serving(t, Options{}, p)
	get := func(path string) string {
		_, text := send(t, request(t, http.MethodGet, url+path, ""))
		return strings.TrimSpace(text)
	}
	one := `{"name":"p","answers":"labels","ready":true,"rebuilding":false,"waiting":0,"working":0,"knowledge":[]}`
	if got := get("/v1/pipelines"); got != `{"pipelines":[`+one+`]}` {
		t.Errorf("%s", got)
	}
	if got := get("/v1/pipelines/p"); got != strings.Replace(one, `"ready"`, `"labels":["a","b"],"ready"`, 1) {
		t.Errorf("%s", got)
	}
	if got := get("/v1/pipelines/q"); !strings.Contains(got, `"status":404`) {
		t.Errorf("%s", got)
	}
	begun, release := make(chan struct{}, 10), make(chan struct{})
	var right atomic.Bool
	p.Rebuilding = func(context.Context) error {
		begun <- struct{}{}
		<-release
		if right.Load() {
			return nil
		}
		return errors.New("p.hcl:1:1: it is wrong")
	}
	for range 5 { // one begins, one waits for it, and that one will see what the others would
		if response, text := post(t, url+"/v1/pipelines/p/rebuild", "application/json", ""); response.StatusCode != http.StatusAccepted || strings.TrimSpace(text) != one {
			t.Errorf("%s %s", response.Status, text)
		}
	}
	close(release)
	if response, text := post(t, url+"/v1/pipelines/p/rebuild?wait=true", "application/json", ""); response.StatusCode != http.StatusConflict || !strings.Contains(text, "it is wrong") {
		t.Errorf("%s %s", response.Status, text)
	}
	if n := len(begun); n > 3 {
		t.Errorf("%d were begun", n)
	}
	right.Store(true)
	if response, text := post(t, url+"/v1/pipelines/p/rebuild?wait=true", "application/json", ""); response.StatusCode != http.StatusOK || strings.TrimSpace(text) != one {
		t.Errorf("%s %s", response.Status, text)
	}
	if response, _ := post(t, url+"/v1/pipelines/q/rebuild", "application/json", ""); response.StatusCode != http.StatusNotFound {
		t.Errorf("%s", response.Status)
	}
}
