package servetest

import (
	"context"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/remote/live"
	"github.com/racflow/racflow/engine/internal/run/result"
)

// Pipeline answers with its function To.
type Pipeline struct {
	Label string // its name
	To    func(context.Context, engine.Item) (engine.Result, error)
	State live.Status
	// Rebuilding is called by Rebuild; nil: Rebuild does nothing.
	Rebuilding func(context.Context) error
}

// Name implements serve.Pipeline.
func (p *Pipeline) Name() string { return p.Label }

// Definition implements serve.Pipeline.
func (p *Pipeline) Definition() *pipeline.Pipeline {
	return &pipeline.Pipeline{Name: p.Label, Stages: []*pipeline.Stage{{Enabled: true, Retrieve: &pipeline.Retrieve{From: &pipeline.Knowledge{Name: "k"}}}}}
}

// Answer implements serve.Pipeline.
func (p *Pipeline) Answer(ctx context.Context, i engine.Item) (engine.Result, error) {
	return p.To(ctx, i)
}

// Retrieve implements serve.Pipeline: it finds the item's text itself.
func (p *Pipeline) Retrieve(ctx context.Context, i engine.Item) ([]engine.Candidate, error) {
	if _, err := p.To(ctx, i); err != nil {
		return nil, err
	}
	return []engine.Candidate{{ID: "c1", Text: i.Text, Score: 1}}, nil
}

// Follow implements serve.Pipeline: before the result it sends a search, a vote and a skipped voter.
func (p *Pipeline) Follow(ctx context.Context, i engine.Item, each func(live.Event)) (engine.Result, error) {
	r, err := p.To(ctx, i)
	if err == nil && r.Error == nil {
		each(live.Event{Stage: "retrieve.near", Candidates: []engine.Candidate{{ID: "c1"}}})
		each(live.Event{Stage: "sample.vote", Votes: []result.Vote{{Voter: "vote", Answer: string(r.Answer), Weight: 1, Accepted: true}}})
		each(live.Event{Stage: "sample.other", Skipped: "its when rule does not hold"})
	}
	return r, err
}

// Rebuild implements serve.Pipeline.
func (p *Pipeline) Rebuild(ctx context.Context) error {
	if p.Rebuilding == nil {
		return nil
	}
	return p.Rebuilding(ctx)
}

// Status implements serve.Pipeline.
func (p *Pipeline) Status() live.Status { return p.State }
