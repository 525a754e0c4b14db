package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/serve/live"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// failing returns a function that answers with an error, or with a result that has one.
func failing(err error, failed *result.Failure) func(context.Context, workspace.Item) (workspace.Result, error) {
	return func(_ context.Context, i workspace.Item) (workspace.Result, error) {
		return workspace.Result{ID: i.ID, Error: failed}, err
	}
}

// TestStatus: each cause of a missing answer has its own status, and a problem with the reason.
func TestStatus(t *testing.T) {
	late := func(ctx context.Context, _ workspace.Item) (workspace.Result, error) {
		<-ctx.Done()
		return workspace.Result{}, ctx.Err()
	}
	long := strings.Repeat("x", 5000)
	for name, test := range map[string]struct {
		path, contentType, body string
		answer                  func(context.Context, workspace.Item) (workspace.Result, error)
		status                  int
		want                    string // in the detail or the errors
		retry                   string
	}{
		"answered":         {body: `{"text": "a"}`, status: 200},
		"retrieved":        {path: "/v1/pipelines/p/retrieve", body: `{"text": "a"}`, status: 200},
		"metadata":         {body: `{"id": "7", "text": "a", "label": "b", "meta": {"x": [1, {"y": null}]}}`, status: 200},
		"another charset":  {contentType: "application/json; charset=utf-8", body: `{"text": "a"}`, status: 200},
		"no JSON":          {body: `{"text": `, status: 400, want: "unexpected end"},
		"long and no JSON": {body: `{"text": ` + long, status: 400, want: "invalid character"},
		"deep":             {body: strings.Repeat("[", 100_000), status: 400, want: "max depth"},
		"no UTF-8":         {body: "{\"text\": \"a\xff\"}", status: 400, want: "not UTF-8"},
		"empty":            {body: "", status: 400, want: "body is required"},
		"no text":          {body: `{}`, status: 422, want: "text"},
		"a number":         {body: `{"text": 7}`, status: 422, want: "string"},
		"a list":           {body: `[{"text": "a"}]`, status: 422, want: "object"},
		"another field":    {body: `{"text": "a", "txet": "b"}`, status: 422, want: "txet"},
		"an empty text":    {body: `{"text": " "}`, status: 422, want: "the text is empty"},
		"searched empty":   {path: "/v1/pipelines/p/retrieve", body: `{"text": " "}`, status: 422, want: "the text is empty"},
		"another type":     {contentType: "text/plain", body: `{"text": "a"}`, status: 415, want: ""},
		"no pipeline":      {path: "/v1/pipelines/q/answer", body: `{"text": "a"}`, status: 404, want: "there is no pipeline q"},
		"no pipeline here": {path: "/v1/pipelines/q/retrieve", body: `{"text": "a"}`, status: 404, want: "there is no pipeline q"},
		"no path":          {path: "/v1/answer", body: `{"text": "a"}`, status: 404, want: "openapi.json"},
		"no cleaner path":  {path: "/v1//nothing", body: `{"text": "a"}`, status: 404, want: "openapi.json"},
		"no method":        {path: "/v1/pipelines", body: `{"text": "a"}`, status: 405, want: "GET"},
		"too long":         {body: `{"text": "` + strings.Repeat("x", 10<<10) + `"}`, status: 413, want: "8192"},
		"busy":             {body: `{"text": "a"}`, answer: failing(live.ErrBusy, nil), status: 429, want: "wait", retry: "1"},
		"starting":         {body: `{"text": "a"}`, answer: failing(live.ErrStarting, nil), status: 503, want: "starting", retry: "2"},
		"cannot serve":     {body: `{"text": "a"}`, answer: failing(errors.New("the store is gone"), nil), status: 503, want: "the store is gone", retry: "5"},
		"too late":         {body: `{"text": "a"}`, answer: late, status: 504, want: "longer"},
		"a stage fails":    {body: `{"text": "a"}`, answer: failing(nil, &result.Failure{Stage: "sample.x", Message: "it ended"}), status: 502, want: "sample.x: it ended"},
		"a search fails":   {path: "/v1/pipelines/p/retrieve", body: `{"text": "a"}`, answer: failing(&outcome.Failure{Stage: "retrieve.x", Err: errors.New("it ended")}, nil), status: 502, want: "retrieve.x: it ended"},
		"a panic":          {body: `{"text": "a"}`, answer: func(context.Context, workspace.Item) (workspace.Result, error) { panic("oh") }, status: 500, want: "log"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newFake("p")
			if test.answer != nil {
				p.To = test.answer
			}
			o := Options{Guard: GuardOptions{Body: 8 << 10}}
			switch name {
			case "too late":
				o.Timeout = time.Millisecond
			case "deep":
				o.Guard.Body = 1 << 20
			}
			_, url := serving(t, o, p)
			path := cmp.Or(test.path, "/v1/pipelines/p/answer")
			response, text := post(t, url+path, cmp.Or(test.contentType, "application/json"), test.body)
			if response.StatusCode != test.status || response.Header.Get("Retry-After") != test.retry {
				t.Fatalf("%s %q\n%s", response.Status, response.Header.Get("Retry-After"), text)
			}
			if test.status == 200 {
				return
			}
			var problem Problem
			must.Do(t, json.Unmarshal([]byte(text), &problem))
			if problem.Status != test.status || problem.Title == "" || !strings.Contains(text, test.want) || len(text) > 1000 {
				t.Errorf("want status %d with %q, got\n%s", test.status, test.want, text)
			}
			if got := response.Header.Get("Content-Type"); got != problemContentType {
				t.Errorf("it is %s", got)
			}
		})
	}
}

func TestAnswer(t *testing.T) {
	_, url := serving(t, Options{}, newFake("p"), newFake("with space"))
	_, text := post(t, url+"/v1/pipelines/p/answer", "application/json", `{"text": "a <b>", "label": "x"}`)
	if want := `{"id":"1","text":"a <b>","expected":"x","answer":"A <B>","agreement":0,"flagged":false,"votes":[]}` + "\n"; text != want {
		t.Errorf("%s", text)
	}
	_, text = post(t, url+"/v1/pipelines/with%20space/retrieve", "application/json", `{"id": "7", "text": "a"}`)
	if want := `{"id":"7","candidates":[{"id":"c1","text":"a","score":1}]}` + "\n"; text != want {
		t.Errorf("%s", text)
	}
}

// TestEvents: stages come before the result, and a refusal before the first event has its own
// status.
func TestEvents(t *testing.T) {
	p := newFake("p")
	_, url := serving(t, Options{}, p)
	ask := func(text string) (reply, string) {
		accept := "application/json;q=0.5, text/event-stream"
		return send(t, request(t, http.MethodPost, url+"/v1/pipelines/p/answer", `{"text": "`+text+`"}`, "Accept", accept))
	}
	response, text := ask(`a\nb`)
	want := `event: stage
data: {"stage":"retrieve.near","seconds":0,"candidates":[{"id":"c1","text":"","score":0}]}

event: stage
data: {"stage":"sample.vote","seconds":0,"votes":[{"voter":"vote","answer":"A\nB","weight":1,"accepted":true}]}

event: stage
data: {"stage":"sample.other","seconds":0,"skipped":"its when rule does not hold"}

event: result
data: {"id":"1","text":"a\nb","answer":"A\nB","agreement":0,"flagged":false,"votes":[]}

`
	if text != want || response.Header.Get("Content-Type") != "text/event-stream" || response.Header.Get("X-Accel-Buffering") != "no" {
		t.Errorf("%s\n%s", response.Header, text)
	}
	p.To = failing(live.ErrBusy, nil)
	if response, text = ask("a"); response.StatusCode != http.StatusTooManyRequests || !strings.Contains(text, `"status":429`) {
		t.Errorf("%s\n%s", response.Status, text)
	}
}

// TestGone: the work for a client that disconnects ends, also before the first event.
func TestGone(t *testing.T) {
	for _, accept := range []string{"application/json", "text/event-stream"} {
		p := newFake("p")
		begun, ended := make(chan struct{}), make(chan error, 1)
		p.To = func(ctx context.Context, _ workspace.Item) (workspace.Result, error) {
			close(begun)
			<-ctx.Done()
			ended <- ctx.Err()
			return workspace.Result{}, ctx.Err()
		}
		_, url := serving(t, Options{Timeout: time.Hour}, p)
		ctx, cancel := context.WithCancel(t.Context())
		r := request(t, http.MethodPost, url+"/v1/pipelines/p/answer", `{"text": "a"}`, "Accept", accept).WithContext(ctx)
		go func() {
			<-begun
			cancel()
		}()
		if response, err := http.DefaultClient.Do(r); err == nil {
			_ = response.Body.Close()
			t.Errorf("%s: %s", accept, response.Status)
		}
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", accept, err)
		}
	}
}
