package live

import (
	"context"
	"time"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/engine/stage"
)

// request is one for an item, which gets the next number.
func (p *Pipeline) request(ctx context.Context, item engine.Item, k kind) *request {
	return &request{ctx: ctx, kind: k, row: item.Row(int(p.line.Add(1)))}
}

// Answer takes an item through the pipeline. One that fails has its Result's Error set, and the
// error is nil: that says why the item was not worked on (ErrBusy, ErrStarting), that ctx has
// ended, or why the pipeline cannot serve. An item without an ID gets its number.
func (p *Pipeline) Answer(ctx context.Context, item engine.Item) (engine.Result, error) {
	r := p.request(ctx, item, answers)
	if err := p.queue.do(r); err != nil {
		return engine.Result{}, err
	}
	return p.resultOf(r.result), nil
}

// Retrieve returns what the last retrieve or rerank stage leaves for an item, best first. No voter
// is asked.
func (p *Pipeline) Retrieve(ctx context.Context, item engine.Item) ([]engine.Candidate, error) {
	r := p.request(ctx, item, finds)
	if err := p.queue.do(r); err != nil {
		return nil, err
	}
	return result.Candidates(r.found), nil
}

// Event is what one stage made of an item.
type Event struct {
	Stage      string             // as "sample.knn"
	Took       time.Duration      // of the stage
	Candidates []engine.Candidate // of a retrieve or rerank stage, best first
	Votes      []result.Vote      // of a voter
	Skipped    string             // why the stage made nothing of the item; empty: it did
}

// Follow is Answer. each is told what the stages made of the item, in the order of time and from one
// goroutine, before Follow returns.
func (p *Pipeline) Follow(ctx context.Context, item engine.Item, each func(Event)) (engine.Result, error) {
	steps := newStream[stage.Step]()
	r := p.request(ctx, item, follows)
	r.follow = steps.add
	ended := make(chan error, 1)
	go func() { ended <- p.queue.do(r) }()
	tell := func() {
		for _, s := range steps.take() {
			each(Event{s.Stage, s.Took, result.Candidates(s.Candidates), result.Votes(s.Votes), s.Skipped})
		}
	}
	for {
		select {
		case <-steps.there:
			tell()
		case err := <-ended:
			if err != nil {
				return engine.Result{}, err
			}
			tell()
			return p.resultOf(r.result), nil
		}
	}
}

// resultOf is a result as programs get it.
func (p *Pipeline) resultOf(r outcome.Result) engine.Result {
	return result.Of(r, p.Definition().Cost)
}
