package serve

import (
	"errors"
	"net/http/httptest"
	"testing"
)

var errGone = errors.New("gone")

func TestFollow(t *testing.T) {
	rec := httptest.NewRecorder()
	w, from := NewEventWriter(rec), make(chan int, 2)
	from <- 1
	from <- 2
	close(from)
	if w.Begun() {
		t.Error("begun before the first event")
	}
	if !FollowEvents(w, from, func(n int) { w.Send("number", map[string]any{"n": n, "text": "a\n<b>"}) }) {
		t.Error("the client took all, and Follow says that it did not")
	}
	w.Text("[DONE]")
	want := "event: number\ndata: {\"n\":1,\"text\":\"a\\n<b>\"}\n\n" +
		"event: number\ndata: {\"n\":2,\"text\":\"a\\n<b>\"}\n\ndata: [DONE]\n\n"
	if got := rec.Body.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if kind := rec.Header().Get("Content-Type"); kind != "text/event-stream" {
		t.Errorf("type %q", kind)
	}
}

// eventsDeaf is a client that went away.
type eventsDeaf struct{ *httptest.ResponseRecorder }

func (eventsDeaf) Write([]byte) (int, error)       { return 0, errGone }
func (eventsDeaf) WriteString(string) (int, error) { return 0, errGone }

func TestClientGone(t *testing.T) {
	from := make(chan int, 2)
	from <- 1
	from <- 2
	w, seen := NewEventWriter(eventsDeaf{httptest.NewRecorder()}), 0
	if FollowEvents(w, from, func(n int) { seen++; w.Send("", n) }) {
		t.Error("nothing was taken, and Follow says that all was")
	}
	if seen != 1 {
		t.Errorf("%d events were made for a client that took none", seen)
	}
}
