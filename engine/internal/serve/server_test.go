package serve

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/workspace"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestEnd: an ending server reports that it is not ready, lets requests end, and cuts off late
// requests.
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
		p.To = func(ctx context.Context, i workspace.Item) (workspace.Result, error) {
			close(begun)
			select {
			case <-release:
			case <-ctx.Done():
				return workspace.Result{}, ctx.Err()
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
			s.guard.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
			return w.Code, w.Body.String()
		}
		if code, text := ready(); code != 200 || text != `{"status":"ready"}`+"\n" {
			t.Errorf("%s: %d %s", name, code, text)
		}
		stop()
		<-s.ending
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
	s.mux.Handle("GET /other/", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("other")) }))
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
	for range 5 { // one begins, another waits, and the waiting one will see all changes
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
