package serve

import (
	"context"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/live"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/engine/serve/events"
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

// stream answers an item by events. Until there is one, what cannot be served is answered
// as it is otherwise.
func (s *Server) stream(p Pipeline, item engine.Item) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		r, w := humago.Unwrap(hc)
		ctx, cancel := context.WithTimeout(r.Context(), s.options.Timeout)
		defer cancel()
		steps := make(chan live.Event, 64)
		var answered engine.Result
		var failed error
		go func() {
			defer close(steps)
			answered, failed = p.Follow(ctx, item, func(e live.Event) {
				select {
				case steps <- e:
				case <-ctx.Done():
				}
			})
		}()
		out := events.New(w)
		if !events.Follow(out, steps, func(e live.Event) {
			out.Send("stage", Event{e.Stage, e.Took.Seconds(), e.Candidates, e.Votes, e.Skipped})
		}) {
			cancel()
			for range steps { // until the work has ended
			}
			return
		}
		problem := ProblemOf(ctx, answered, failed)
		switch {
		case problem == nil:
			out.Send("result", answered)
		case out.Begun():
			out.Send("error", problem)
		default:
			problem.ServeHTTP(w, r)
		}
	}}
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
