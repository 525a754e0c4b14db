package run

import (
	"context"
	"fmt"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/engine/stage"
)

// Spending is what decides about paid voters where the stages are asked on other machines (package
// spend).
type Spending interface {
	// Pass is the one that the run is in.
	Pass() Pass
	// Note adds to the bill of the item of a line: what was forecast there, or asked.
	Note(line int, b outcome.Bill)
}

// elsewhere has other machines answer those records that the stages have to be asked about.
func (r *Run) elsewhere(ctx context.Context, records []*stage.Record) error {
	var open []*stage.Record
	var o Order
	for _, rec := range records {
		if rec.Open() {
			open, o.Rows = append(open, rec), append(o.Rows, rec.Row)
		}
	}
	if len(open) == 0 {
		return nil
	}
	if r.spending != nil {
		o.Pass = r.spending.Pass()
	}
	a, err := r.remote.Answer(ctx, o)
	if err != nil {
		return err
	}
	if len(a.Results) != len(open) {
		return fmt.Errorf("another machine has answered %d items with %d results", len(open), len(a.Results))
	}
	r.graph.Worked(a.Times, a.Distributions)
	r.graph.Halt(a.Halted, a.Ended)
	for i, rec := range open {
		why, left := a.Left[i]
		rec.Answer = &stage.Answer{Result: a.Results[i], Left: left}
		if left {
			f := *outcome.FailureOf(why)
			if f.Stage == "" && len(a.Halted) > 0 {
				f.Stage = a.Halted[0].Stage
			}
			rec.Answer.Result.Missing = []*outcome.Failure{&f}
		}
		if b, ok := a.Bills[i]; ok && r.spending != nil {
			r.spending.Note(rec.Row.Line, b)
		}
	}
	return nil
}

// Work takes rows of a run through the stages that another process began, for its Remote.
func (r *Run) Work(ctx context.Context, rows []source.Row) (Answers, error) {
	b, err := r.Batch(ctx, rows, nil)
	if err != nil {
		return Answers{}, err
	}
	return Answers{
		Results: b.Results, Left: b.Left, Halted: r.graph.Halted(), Ended: r.graph.Err(),
		Distributions: r.graph.Distributions(), Times: r.since(),
	}, nil
}

// since is what the stages have done since the last time.
func (r *Run) since() []outcome.StageTime {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.graph.Times()
	fresh := make([]outcome.StageTime, len(now))
	for i, t := range now {
		fresh[i] = t
		if i < len(r.told) { // the stages are the same each time
			fresh[i].Rows -= r.told[i].Rows
			fresh[i].Busy -= r.told[i].Busy
		}
	}
	r.told = now
	return fresh
}
