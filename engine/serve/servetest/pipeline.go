package servetest

import (
	"context"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/live"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/result"
)

// Pipeline answers as its function says.
type Pipeline struct {
	Label    string // its name
	To       func(context.Context, engine.Item) (engine.Result, error)
	State    live.Status
	Searches *pipeline.Knowledge // nil: one of the name "k"
}

// Name implements serve.Pipeline.
func (p *Pipeline) Name() string { return p.Label }

// Definition implements serve.Pipeline.
func (p *Pipeline) Definition() *pipeline.Pipeline {
	k := p.Searches
	if k == nil {
		k = &pipeline.Knowledge{Name: "k"}
	}
	return &pipeline.Pipeline{Name: p.Label, Stages: []*pipeline.Stage{{Enabled: true, Retrieve: &pipeline.Retrieve{From: k}}}}
}

// Answer implements serve.Pipeline.
func (p *Pipeline) Answer(ctx context.Context, i engine.Item) (engine.Result, error) {
	return p.To(ctx, i)
}

// Retrieve implements serve.Pipeline.
func (p *Pipeline) Retrieve(ctx context.Context, i engine.Item) ([]engine.Candidate, error) {
	r, err := p.To(ctx, i)
	return r.Candidates, err
}

// Follow implements serve.Pipeline: a search and a vote go before the result.
func (p *Pipeline) Follow(ctx context.Context, i engine.Item, each func(live.Event)) (engine.Result, error) {
	r, err := p.To(ctx, i)
	if err == nil && r.Error == nil {
		each(live.Event{Stage: "retrieve.near", Candidates: []engine.Candidate{{ID: "c1"}}})
		each(live.Event{Stage: "sample.vote", Votes: []result.Vote{{Voter: "vote", Answer: string(r.Answer), Weight: 1, Accepted: true}}})
	}
	return r, err
}

// Rebuild implements serve.Pipeline.
func (p *Pipeline) Rebuild(context.Context) error { return nil }

// Status implements serve.Pipeline.
func (p *Pipeline) Status() live.Status { return p.State }
