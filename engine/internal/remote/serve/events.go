package serve

import (
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// This file writes server-sent events for all interfaces of a server, so that proxies neither delay
// an event nor mistake silence for the end.
//
// It does not interpret events. Until the response has begun, a handler can still send one of another type.

// pulse is the maximum silence in a stream.
const pulse = 15 * time.Second

// EventWriter writes events to a client. It is not safe for concurrent use.
type EventWriter struct {
	to     http.ResponseWriter
	begun  bool
	failed bool // the client accepts nothing more
}

// NewEventWriter returns a writer. The response begins with the first event.
func NewEventWriter(to http.ResponseWriter) *EventWriter { return &EventWriter{to: to} }

// Begun reports whether the response has begun, so that it is one of events.
func (w *EventWriter) Begun() bool { return w.begun }

// Send sends a value as JSON. With an empty name the event has no name.
func (w *EventWriter) Send(name string, value any) {
	w.start(name)
	enc := json.NewEncoder(w.to) // escapes line ends and adds one at the end
	enc.SetEscapeHTML(false)
	w.failed = w.failed || enc.Encode(value) != nil
	w.write("\n")
}

// Text sends a line of text as an event without a name.
func (w *EventWriter) Text(line string) {
	w.start("")
	w.write(line + "\n\n")
}

// FollowEvents calls each with every value until the channel is closed, and flushes at once what
// each sends. false: the client accepts nothing more.
func FollowEvents[T any](w *EventWriter, from <-chan T, each func(T)) bool {
	ticker := time.NewTicker(pulse)
	defer ticker.Stop()
	for !w.failed {
		select {
		case one, ok := <-from:
			if !ok {
				return true
			}
			each(one)
		case <-ticker.C:
			w.begin()
			w.write(": at work\n\n")
		}
		w.failed = w.failed || w.begun && http.NewResponseController(w.to).Flush() != nil
	}
	return false
}

func (w *EventWriter) begin() {
	if w.begun {
		return
	}
	w.begun = true
	w.to.Header().Set("Content-Type", "text/event-stream")
	w.to.Header().Set("Cache-Control", "no-store")
	w.to.Header().Set("X-Accel-Buffering", "no") // makes proxies that know it forward each event at once
}

func (w *EventWriter) start(name string) {
	w.begin()
	if name != "" {
		w.write("event: " + name + "\n")
	}
	w.write("data: ")
}

func (w *EventWriter) write(text string) {
	if !w.failed {
		_, err := io.WriteString(w.to, text)
		w.failed = err != nil
	}
}
