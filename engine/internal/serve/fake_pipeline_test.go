package serve

import (
	"context"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/serve/live"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/engine/result"
)

// fakePipeline answers with its function To.
type fakePipeline struct {
	Label string // the pipeline's name
	To    func(context.Context, workspace.Item) (workspace.Result, error)
	State live.Status
	// Rebuilding is called by Rebuild; nil: Rebuild does nothing.
	Rebuilding func(context.Context) error
}

// Name implements Pipeline.
func (p *fakePipeline) Name() string { return p.Label }

// Definition implements Pipeline.
func (p *fakePipeline) Definition() *pipeline.Pipeline {
	return &pipeline.Pipeline{Name: p.Label, Stages: []*pipeline.Stage{{Enabled: true, Retrieve: &pipeline.Retrieve{From: &pipeline.Knowledge{Name: "k"}}}}}
}

// Answer implements Pipeline.
func (p *fakePipeline) Answer(ctx context.Context, i workspace.Item) (workspace.Result, error) {
	return p.To(ctx, i)
}

// Decide implements Pipeline.
func (p *fakePipeline) Decide(ctx context.Context, i workspace.Item) (workspace.Result, error) {
	return p.To(ctx, i)
}

// Embed implements Pipeline: the vector of a text counts its letters.
func (p *fakePipeline) Embed(_ context.Context, texts []string) (all [][]float32, _ error) {
	for _, text := range texts {
		v := make([]float32, 26)
		for _, r := range text {
			if r >= 'a' && r <= 'z' {
				v[r-'a']++
			}
		}
		all = append(all, v)
	}
	return all, nil
}

// Retrieve implements Pipeline: it finds only the item's own text.
func (p *fakePipeline) Retrieve(ctx context.Context, i workspace.Item) ([]workspace.Candidate, error) {
	if _, err := p.To(ctx, i); err != nil {
		return nil, err
	}
	return []workspace.Candidate{{ID: "c1", Text: i.Text, Score: 1}}, nil
}

// Follow implements Pipeline: before the result it sends a search, a vote and a skipped voter.
func (p *fakePipeline) Follow(ctx context.Context, i workspace.Item, each func(live.Event)) (workspace.Result, error) {
	r, err := p.To(ctx, i)
	if err == nil && r.Error == nil {
		each(live.Event{Stage: "retrieve.near", Candidates: []workspace.Candidate{{ID: "c1"}}})
		each(live.Event{Stage: "sample.vote", Votes: []result.Vote{{Voter: "vote", Answer: string(r.Answer), Weight: 1, Accepted: true}}})
		each(live.Event{Stage: "sample.other", Skipped: "its when rule does not hold"})
	}
	return r, err
}

// Rebuild implements Pipeline.
func (p *fakePipeline) Rebuild(ctx context.Context) error {
	if p.Rebuilding == nil {
		return nil
	}
	return p.Rebuilding(ctx)
}

// Status implements Pipeline.
func (p *fakePipeline) Status() live.Status { return p.State }
