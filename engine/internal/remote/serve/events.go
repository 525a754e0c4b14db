package serve

import (
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// This file writes server-sent events, for all faces of a server alike: what stands between
// the server and a client neither holds an event back nor takes silence for an end.
//
// It knows no form of events. A response that has not begun can still be one of another type.

// pulse is how long a stream is silent at most.
const pulse = 15 * time.Second

// EventWriter writes events to a client. It is for one goroutine.
type EventWriter struct {
	to     http.ResponseWriter
	begun  bool
	failed bool // the client takes nothing any more
}

// NewEventWriter returns a writer. The response begins with the first event.
func NewEventWriter(to http.ResponseWriter) *EventWriter { return &EventWriter{to: to} }

// Begun reports whether the response is one of events by now.
func (w *EventWriter) Begun() bool { return w.begun }

// Send sends a value as JSON. An empty name gives the event none.
func (w *EventWriter) Send(name string, value any) {
	w.start(name)
	enc := json.NewEncoder(w.to) // which ends the line, and escapes those within
	enc.SetEscapeHTML(false)
	w.failed = w.failed || enc.Encode(value) != nil
	w.write("\n")
}

// Text sends a line of text without a name.
func (w *EventWriter) Text(line string) {
	w.start("")
	w.write(line + "\n\n")
}

// FollowEvents calls each with all that comes until the channel is closed, and passes on at once what
// each sends. false: the client does not take it.
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
	w.to.Header().Set("X-Accel-Buffering", "no") // a proxy that knows it passes each event on at once
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
