package serve

import (
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"
)

// This file writes server-sent events for all interfaces of a server, so that proxies neither delay
// an event nor mistake silence for the end.
//
// It does not interpret events. Until the response has begun, a handler can still send a response of
// another type.

// pulse is the maximum silence in a stream.
const pulse = 15 * time.Second

// eventWriter writes events to a client. It is safe for concurrent use.
type eventWriter struct {
	to     http.ResponseWriter
	cancel func()
	timer  *time.Timer

	mu     sync.Mutex
	begun  bool
	failed bool // the client accepts nothing more
	quiet  bool
}

// newEventWriter returns a writer. The response begins with the first event, or with a keep-alive comment if there
// is no event for long. cancel ends the work when the client accepts no more data.
func newEventWriter(to http.ResponseWriter, cancel func()) *eventWriter {
	w := &eventWriter{to: to, cancel: cancel}
	w.mu.Lock() // pulse waits until w.timer is set
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(pulse, w.pulse)
	return w
}

func (w *eventWriter) pulse() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.quiet {
		return
	}
	w.begin()
	w.write(": at work\n\n")
	w.flush()
	w.timer.Reset(pulse)
}

// End ends the keep-alive comments, and reports whether the response has begun as a stream of events. Later
// events are flushed at the end of the request.
func (w *eventWriter) End() (begun bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Stop()
	w.quiet = true
	return w.begun
}

// Send sends a value as JSON. With an empty name the event has no name. Until End, each event is flushed
// immediately.
func (w *eventWriter) Send(name string, value any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.start(name)
	if !w.failed {
		enc := json.NewEncoder(w.to) // escapes line ends and adds one at the end
		enc.SetEscapeHTML(false)
		w.failed = enc.Encode(value) != nil
	}
	w.write("\n")
	w.flush()
}

// Text sends a line of text as an event without a name.
func (w *eventWriter) Text(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.start("")
	w.write(line + "\n\n")
}

// flush sends the written data, and ends the work if the client accepts no more.
func (w *eventWriter) flush() {
	if !w.quiet {
		w.failed = w.failed || http.NewResponseController(w.to).Flush() != nil
	}
	if w.failed {
		w.cancel()
	}
}

func (w *eventWriter) begin() {
	if w.begun {
		return
	}
	w.begun = true
	w.to.Header().Set("Content-Type", "text/event-stream")
	w.to.Header().Set("Cache-Control", "no-store")
	w.to.Header().Set("X-Accel-Buffering", "no") // makes proxies that know it forward each event at once
}

func (w *eventWriter) start(name string) {
	w.begin()
	if name != "" {
		w.write("event: " + name + "\n")
	}
	w.write("data: ")
}

func (w *eventWriter) write(text string) {
	if !w.failed {
		_, err := io.WriteString(w.to, text)
		w.failed = err != nil
	}
}
