package serve

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/live"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/result"
)

// fake is a pipeline that answers with the text in capitals, by functions that tests
// replace.
type fake struct {
	name    string
	answer  func(context.Context, engine.Item) (engine.Result, error)
	rebuild func(context.Context) error
	status  live.Status
	asked   atomic.Int64
}

func newFake(name string) *fake {
	return &fake{name: name, answer: shout, status: live.Status{Ready: true}, rebuild: func(context.Context) error { return nil }}
}

func shout(_ context.Context, i engine.Item) (engine.Result, error) {
	r := engine.Result{ID: i.ID, Text: i.Text, Expected: i.Label, Votes: []result.Vote{}}
	if wrong := i.Row(1).Err; wrong != nil {
		r.Error = &result.Failure{Line: 1, Message: wrong.Error()}
		return r, nil //nolint:nilerr // an item that fails is in its result
	}
	r.Answer = result.Answer(strings.ToUpper(i.Text))
	return r, nil
}

func (f *fake) Name() string { return f.name }

func (f *fake) Definition() *pipeline.Pipeline {
	return &pipeline.Pipeline{Name: f.name, Stages: []*pipeline.Stage{{Enabled: true, Retrieve: &pipeline.Retrieve{From: &pipeline.Knowledge{Name: "k"}}}}}
}

func (f *fake) Answer(ctx context.Context, i engine.Item) (engine.Result, error) {
	f.asked.Add(1)
	return f.answer(ctx, i)
}

func (f *fake) Retrieve(ctx context.Context, i engine.Item) ([]engine.Candidate, error) {
	if _, err := f.answer(ctx, i); err != nil {
		return nil, err
	}
	return []engine.Candidate{{ID: "c1", Text: i.Text, Score: 1}}, nil
}

func (f *fake) Follow(ctx context.Context, i engine.Item, each func(live.Event)) (engine.Result, error) {
	r, err := f.answer(ctx, i)
	if err == nil && r.Error == nil {
		each(live.Event{Stage: "retrieve.near", Candidates: []engine.Candidate{{ID: "c1"}}})
		each(live.Event{Stage: "sample.vote", Votes: []result.Vote{{Voter: "vote", Answer: string(r.Answer), Weight: 1, Accepted: true}}})
		each(live.Event{Stage: "sample.other", Skipped: "its when rule does not hold"})
	}
	return r, err
}

func (f *fake) Rebuild(ctx context.Context) error { return f.rebuild(ctx) }
func (f *fake) Status() live.Status               { return f.status }

// serving starts a server of pipelines on a loopback address.
func serving(t *testing.T, o Options, all ...Pipeline) (*Server, string) {
	t.Helper()
	s, err := New(func() []Pipeline { return all }, o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	return s, server.URL
}

// post sends a body, and returns what comes back.
func post(t *testing.T, url, contentType, body string) (reply, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	return send(t, r)
}

// reply is what comes beside a body.
type reply struct {
	StatusCode int
	Status     string
	Header     http.Header
}

func send(t *testing.T, r *http.Request) (reply, string) {
	t.Helper()
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{response.StatusCode, response.Status, response.Header}, string(text)
}
