package serve

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/racflow/racflow/engine"
)

// chatDeaf is a client that went away.
type chatDeaf struct{ *httptest.ResponseRecorder }

func (chatDeaf) Write([]byte) (int, error)       { return 0, errors.New("gone") }
func (chatDeaf) WriteString(string) (int, error) { return 0, errors.New("gone") }

// Where the client goes away, the work ends with the request: what serves it may be closed then.
func TestStreamOfAClientThatLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w, ended := chatDeaf{httptest.NewRecorder()}, false
		s := stream{to: NewEventWriter(w)}
		s.serve(w, httptest.NewRequestWithContext(ctx, "POST", "/", nil), cancel, func() (engine.Result, *refusal) {
			<-ctx.Done()
			ended = true
			return engine.Result{}, nil
		})
		if !ended {
			t.Error("the answer is still worked on")
		}
	})
}
