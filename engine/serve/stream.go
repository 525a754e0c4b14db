package serve

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/live"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/engine/serve/guard"
)

// Event is what a stage did for an item.
type Event struct {
	Stage      string             `json:"stage" doc:"Such as retrieve.neighbours"`
	Seconds    float64            `json:"seconds" doc:"How long it took"`
	Candidates []engine.Candidate `json:"candidates,omitempty" doc:"What it left to those below it, best first"`
	Votes      []result.Vote      `json:"votes,omitempty"`
	Skipped    string             `json:"skipped,omitempty" doc:"Why it was not asked"`
}

// pulse is how long a stream is silent at most: what stands between takes silence for an
// end.
const pulse = 15 * time.Second

// stream answers an item by events. Until there is one, what cannot be served is answered
// as it is otherwise.
func (s *Server) stream(p Pipeline, item engine.Item) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		r, w := humago.Unwrap(hc)
		ctx, cancel := context.WithTimeout(r.Context(), s.options.Timeout)
		defer cancel()
		events := make(chan live.Event, 64)
		var answered engine.Result
		var failed error
		go func() {
			defer close(events)
			answered, failed = p.Follow(ctx, item, func(e live.Event) {
				select {
				case events <- e:
				case <-ctx.Done():
				}
			})
		}()
		out := &eventWriter{to: w}
		if !out.follow(events) {
			cancel()
			for range events { // until the work has ended
			}
			return
		}
		problem := ProblemOf(ctx, answered, failed)
		switch {
		case problem == nil:
			out.send("result", answered)
		case out.begun:
			out.send("error", problem)
		default:
			problem.ServeHTTP(w, r)
		}
	}}
}

// eventWriter writes server-sent events.
type eventWriter struct {
	to     http.ResponseWriter
	begun  bool
	failed bool
}

// follow sends events until there are no more; false: the client does not take them.
func (e *eventWriter) follow(events <-chan live.Event) bool {
	ticker := time.NewTicker(pulse)
	defer ticker.Stop()
	for !e.failed {
		select {
		case one, ok := <-events:
			if !ok {
				return true
			}
			e.send("stage", Event{one.Stage, one.Took.Seconds(), one.Candidates, one.Votes, one.Skipped})
		case <-ticker.C:
			e.begin()
			e.flush(io.WriteString(e.to, ": at work\n\n"))
		}
	}
	return false
}

func (e *eventWriter) begin() {
	if e.begun {
		return
	}
	e.begun = true
	e.to.Header().Set("Content-Type", "text/event-stream")
	e.to.Header().Set("Cache-Control", "no-store")
	e.to.Header().Set("X-Accel-Buffering", "no") // a proxy that knows it passes each event on at once
}

func (e *eventWriter) send(name string, value any) {
	e.begin()
	if _, err := io.WriteString(e.to, "event: "+name+"\ndata: "); err != nil {
		e.failed = true
		return
	}
	enc := json.NewEncoder(e.to) // which ends the line, and escapes those within
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		e.failed = true
		return
	}
	e.flush(io.WriteString(e.to, "\n"))
}

func (e *eventWriter) flush(_ int, err error) {
	e.failed = e.failed || err != nil || http.NewResponseController(e.to).Flush() != nil
}

// events describes them.
func (s *Server) events() *huma.Schema {
	schemas := s.api.OpenAPI().Components.Schemas
	var kinds []*huma.Schema
	for _, kind := range []struct {
		name string
		data any
	}{{"stage", Event{}}, {"result", engine.Result{}}, {"error", guard.Problem{}}} {
		kinds = append(kinds, &huma.Schema{Type: huma.TypeObject, Required: []string{"event", "data"}, Properties: map[string]*huma.Schema{
			"event": {Type: huma.TypeString, Enum: []any{kind.name}},
			"data":  schemas.Schema(reflect.TypeOf(kind.data), true, ""),
		}})
	}
	return &huma.Schema{Type: huma.TypeArray, Description: "Server-sent events; data is JSON", Items: &huma.Schema{OneOf: kinds}}
}
