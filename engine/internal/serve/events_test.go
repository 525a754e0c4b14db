package serve

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var errGone = errors.New("gone")

func TestEventWriter(t *testing.T) {
	rec := httptest.NewRecorder()
	w := newEventWriter(rec, func() { t.Error("the client took all") })
	for n := range 2 {
		w.Send("number", map[string]any{"n": n + 1, "text": "a\n<b>"})
	}
	if !w.End() {
		t.Error("it has not begun")
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

// During long silence, a proxy gets keep-alive comments until the work has ended.
func TestPulse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := httptest.NewRecorder()
		w := newEventWriter(rec, func() { t.Error("the client took all") })
		time.Sleep(pulse - time.Second)
		w.mu.Lock()
		if rec.Body.Len() > 0 {
			t.Errorf("begun early: %q", rec.Body)
		}
		w.mu.Unlock()
		time.Sleep(2*pulse + 2*time.Second)
		if !w.End() {
			t.Error("it has not begun")
		}
		time.Sleep(pulse)
		if got := rec.Body.String(); got != strings.Repeat(": at work\n\n", 3) {
			t.Errorf("got %q", got)
		}
	})
}

// eventsDeaf is a client that has disconnected.
type eventsDeaf struct{ *httptest.ResponseRecorder }

func (eventsDeaf) Write([]byte) (int, error)       { return 0, errGone }
func (eventsDeaf) WriteString(string) (int, error) { return 0, errGone }

// If the client disconnects, the work ends with the next event or keep-alive comment.
func TestClientGone(t *testing.T) {
	for name, send := range map[string]func(*eventWriter){"an event": func(w *eventWriter) { w.Send("", 1) }, "silence": func(*eventWriter) { time.Sleep(2 * pulse) }} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cancelled := false
				w := newEventWriter(eventsDeaf{httptest.NewRecorder()}, func() { cancelled = true })
				send(w)
				if w.End(); !cancelled {
					t.Error("the work goes on for a client that takes nothing")
				}
			})
		})
	}
}
