package chat

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/racflow/racflow/engine"
)

// pulse is how long a stream is silent at most: what stands between takes silence for an end.
const pulse = 15 * time.Second

// stream sends an answer in chunks.
type stream struct {
	to    http.ResponseWriter
	in    request
	chunk completion // without what differs
}

// answered is what came of a question.
type answered struct {
	result  engine.Result
	refused *refusal
}

// serve waits for an answer, with comments meanwhile, and sends it. Until the first of these, an
// error has its status.
func (s stream) serve(r *http.Request, answer func() (engine.Result, *refusal)) {
	done := make(chan answered, 1)
	go func() {
		result, refused := answer()
		done <- answered{result, refused}
	}()
	ticker := time.NewTicker(pulse)
	defer ticker.Stop()
	begun := false
	for {
		select {
		case a := <-done:
			switch {
			case a.refused == nil:
				s.begin(&begun)
				s.answer(a.result)
			case begun:
				s.send(map[string]any{"error": a.refused})
			default:
				a.refused.ServeHTTP(s.to, r)
			}
			return
		case <-ticker.C:
			s.begin(&begun)
			_, _ = io.WriteString(s.to, ": at work\n\n")
			_ = http.NewResponseController(s.to).Flush()
		}
	}
}

func (s stream) begin(begun *bool) {
	if *begun {
		return
	}
	*begun = true
	s.to.Header().Set("Content-Type", "text/event-stream")
	s.to.Header().Set("Cache-Control", "no-store")
	s.to.Header().Set("X-Accel-Buffering", "no") // a proxy that knows it passes each event on at once
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
		s.send(s.chunk)
	}
	_, _ = io.WriteString(s.to, "data: [DONE]\n\n")
}

func (s stream) add(delta *reply, finish *string) {
	s.chunk.Choices = []choice{{Delta: delta, Finish: finish}}
	s.send(s.chunk)
}

func (s stream) send(value any) {
	_, _ = io.WriteString(s.to, "data: ") // the client may be gone
	enc := json.NewEncoder(s.to)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(value)
	_, _ = io.WriteString(s.to, "\n")
}
