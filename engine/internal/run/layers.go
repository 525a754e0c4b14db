package run

import (
	"context"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/stage"
)

// layer answers a batch: it sets the answers that it has (stage.Record.Given) and passes the batch to
// the layer below. Each way to answer items without this machine's stages is a layer. An error means
// that the batch cannot be answered, and no item is to blame.
type layer interface {
	answer(ctx context.Context, records []*stage.Record) error
}

// layers stacks the layers of the run. The lowest answers the items that no other layer does.
func (r *Run) layers(journal Journal) layer {
	var all layer = stages{r.graph}
	if again, ok := journal.(Recaller); ok {
		all = recalled{r.graph, again, all}
	}
	return all
}

// stages answers by the stages of this machine.
type stages struct{ *stage.Graph }

func (s stages) answer(ctx context.Context, records []*stage.Record) error {
	s.Run(ctx, records)
	return nil
}

// earlier sets the answers that the journal has from an earlier part of the run.
func (r *Run) earlier(journal Journal, records ...*stage.Record) {
	if journal == nil {
		return
	}
	for _, rec := range records {
		if !rec.Open() {
			continue
		}
		if result, ok := journal.Answered(rec.Row); ok {
			rec.Given = stage.Kept(stage.Earlier, result)
		}
	}
}

// reviewed sets the answers that people decided.
func (r *Run) reviewed(records ...*stage.Record) {
	decisions := r.graph.Decisions()
	for _, rec := range records {
		if !rec.Open() {
			continue
		}
		if d, ok := decisions.Find(rec.Row.Text); ok {
			by := &outcome.Decision{By: d.Reviewer, At: d.ReviewedAt}
			rec.Given = &stage.Given{From: stage.Person, Result: outcome.Result{Decided: by, Answer: d.Label, Agreement: 1, Confidence: 1, Reason: by.String()}}
		}
	}
}

// recalled sets the answers of another run that hold in this one. If an answer may hold, it
// searches for the item to find out.
type recalled struct {
	graph *stage.Graph
	again Recaller
	below layer
}

func (l recalled) answer(ctx context.Context, records []*stage.Record) error {
	var open []*stage.Record
	var before []outcome.Result
	for _, rec := range records {
		if !rec.Open() {
			continue
		}
		result, holds, ok := l.again.Recall(rec.Row)
		switch {
		case !ok:
		case holds:
			rec.Given = stage.Kept(stage.Taken, result)
		default:
			open, before = append(open, rec), append(before, result)
		}
	}
	if len(open) > 0 {
		l.graph.Search(ctx, open)
		basis := make([]outcome.Basis, len(before))
		for i := range before {
			basis[i] = before[i].Basis
		}
		holds, err := l.graph.Holds(ctx, open, basis)
		if err != nil {
			return err
		}
		for i, rec := range open {
			if holds[i] {
				rec.Given = stage.Kept(stage.Taken, before[i])
			}
		}
	}
	return l.below.answer(ctx, records)
}
