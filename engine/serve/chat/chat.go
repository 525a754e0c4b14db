package chat

import (
	"context"
	"net/http"
	"time"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/serve"
	"github.com/racflow/racflow/engine/serve/events"
)

// Mount adds OpenAI's paths to a server.
func Mount(s *serve.Server) {
	f := face{s.Pipelines(), s.Timeout()}
	s.Mount("POST /v1/chat/completions", http.HandlerFunc(f.complete))
	s.Mount("GET /v1/models", http.HandlerFunc(f.models))
	s.Mount("GET /v1/models/{name}", http.HandlerFunc(f.model))
}

type face struct {
	pipelines serve.Pipelines
	timeout   time.Duration // of an answer
}

// complete answers a question.
func (f face) complete(w http.ResponseWriter, r *http.Request) {
	in, question, refused := read(r)
	if refused != nil {
		refused.ServeHTTP(w, r)
		return
	}
	p := f.pipelines.Named(in.Model)
	if p == nil {
		unknown(in.Model).ServeHTTP(w, r)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), f.timeout)
	defer cancel()
	answer := func() (engine.Result, *refusal) {
		result, err := p.Answer(ctx, engine.Item{Text: question})
		if problem := serve.ProblemOf(ctx, result, err); problem != nil {
			return result, refusalOf(problem)
		}
		return result, nil
	}
	if in.Stream {
		stream{events.New(w), in, newCompletion("chat.completion.chunk", in.Model)}.serve(w, r, cancel, answer)
		return
	}
	result, refused := answer()
	if refused != nil {
		refused.ServeHTTP(w, r)
		return
	}
	whole, m, stop := newCompletion("chat.completion", in.Model), replyOf(result), "stop"
	whole.Choices = []choice{{Message: &m, Finish: &stop}}
	whole.Usage, whole.Racflow = usageOf(result), &result
	write(w, http.StatusOK, whole)
}

// model is a pipeline, as OpenAI lists models.
type model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"` // when what serves took over; 0: not yet
	OwnedBy string `json:"owned_by"`
}

func modelOf(p serve.Pipeline) model {
	m := model{ID: p.Name(), Object: "model", OwnedBy: "racflow"}
	if since := p.Status().Since; !since.IsZero() {
		m.Created = since.Unix()
	}
	return m
}

func (f face) models(w http.ResponseWriter, _ *http.Request) {
	all := []model{}
	for _, p := range f.pipelines() {
		all = append(all, modelOf(p))
	}
	write(w, http.StatusOK, map[string]any{"object": "list", "data": all})
}

func (f face) model(w http.ResponseWriter, r *http.Request) {
	p := f.pipelines.Named(r.PathValue("name"))
	if p == nil {
		unknown(r.PathValue("name")).ServeHTTP(w, r)
		return
	}
	write(w, http.StatusOK, modelOf(p))
}
