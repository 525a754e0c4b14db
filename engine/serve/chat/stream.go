package chat

import (
	"net/http"
	"strings"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/serve/events"
)

// stream sends an answer in chunks.
type stream struct {
	to    *events.Writer
	in    request
	chunk completion // without what differs
}

// answered is what came of a question.
type answered struct {
	result  engine.Result
	refused *refusal
}

// serve waits for an answer and sends it. Until the stream has begun, an error has its status. Where
// the client takes nothing any more, the work is cancelled.
func (s stream) serve(w http.ResponseWriter, r *http.Request, cancel func(), answer func() (engine.Result, *refusal)) {
	done := make(chan answered, 1)
	go func() {
		defer close(done)
		result, refused := answer()
		done <- answered{result, refused}
	}()
	if events.Follow(s.to, done, func(a answered) {
		switch {
		case a.refused == nil:
			s.answer(a.result)
		case s.to.Begun():
			s.to.Send("", map[string]any{"error": a.refused})
		default:
			a.refused.ServeHTTP(w, r)
		}
	}) {
		return
	}
	cancel()
	for range done { // until the work has ended
	}
}

// answer sends a result, a word and a chunk at a time.
func (s stream) answer(r engine.Result) {
	m, stop := replyOf(r), "stop"
	s.add(&reply{Role: m.Role, Refusal: m.Refusal}, nil)
	if m.Content != nil {
		for word := range strings.SplitAfterSeq(*m.Content, " ") {
			s.add(&reply{Content: &word}, nil)
		}
	}
	if len(m.Annotations) > 0 {
		s.add(&reply{Annotations: m.Annotations}, nil)
	}
	s.chunk.Racflow = &r
	s.add(&reply{}, &stop)
	s.chunk.Racflow = nil
	if o := s.in.StreamOptions; o != nil && o.IncludeUsage {
		s.chunk.Choices, s.chunk.Usage = []choice{}, usageOf(r)
		s.to.Send("", s.chunk)
	}
	s.to.Text("[DONE]")
}

func (s stream) add(delta *reply, finish *string) {
	s.chunk.Choices = []choice{{Delta: delta, Finish: finish}}
	s.to.Send("", s.chunk)
}
