package serve

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/serve/live"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// newFake returns a pipeline that answers with the text in capitals.
func newFake(name string) *fakePipeline {
	return &fakePipeline{Label: name, To: shout, State: live.Status{Ready: true}}
}

func shout(_ context.Context, i workspace.Item) (workspace.Result, error) {
	r := workspace.Result{ID: i.ID, Text: i.Text, Expected: i.Label, Votes: []result.Vote{}}
	if wrong := i.Row(1).Err; wrong != nil {
		r.Error = &result.Failure{Line: 1, Message: wrong.Error()}
		return r, nil //nolint:nilerr // an item that fails is in its result
	}
	r.Answer = result.Answer(strings.ToUpper(i.Text))
	return r, nil
}

// serving starts a server of pipelines on a loopback address.
func serving(t *testing.T, o Options, all ...Pipeline) (*Server, string) {
	t.Helper()
	s := must.Get(New(func() []Pipeline { return all }, o))(t)
	server := httptest.NewServer(s.guard)
	t.Cleanup(server.Close)
	return s, server.URL
}

// request makes a request with a header, given as names and values.
func request(t *testing.T, method, url, body string, header ...string) *http.Request {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body)))(t)
	for pair := range slices.Chunk(header, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	return r
}

// post sends a body, and returns the response.
func post(t *testing.T, url, contentType, body string) (reply, string) {
	t.Helper()
	return send(t, request(t, http.MethodPost, url, body, "Content-Type", contentType))
}

// reply is a response without its body.
type reply struct {
	StatusCode int
	Status     string
	Header     http.Header
}

func send(t *testing.T, r *http.Request) (reply, string) {
	t.Helper()
	response, err := http.DefaultClient.Do(r)
	must.Do(t, err)
	defer response.Body.Close() //nolint:errcheck // it was only read
	text := must.Get(io.ReadAll(response.Body))(t)
	return reply{response.StatusCode, response.Status, response.Header}, string(text)
}
