package run

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/racflow/racflow/engine/observe"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/engine/stage"
	"github.com/racflow/racflow/sdk"
)

// Journal keeps results as soon as they are known, so that a run that ended early can
// be resumed.
type Journal interface {
	// Answered returns what an earlier part of the run answered to a row; of the
	// result only what the stages made of it.
	Answered(source.Row) (outcome.Result, bool)
	// Keep is given results in any order, by several goroutines at once.
	Keep([]outcome.Result) error
}

// Recaller is a Journal that has answers of another run, which may hold in this one (package
// again).
type Recaller interface {
	Journal
	// Recall returns the answer to a row. It holds as it is, or where the item gets from the
	// knowledge what its Basis says.
	Recall(source.Row) (r outcome.Result, holds, ok bool)
	// Take is given answers that hold, as Keep.
	Take([]outcome.Result) error
}

// answered is what became of a batch.
type answered struct {
	results []outcome.Result // without those that are left
	left    []left           // these
	later   []int            // lines of items, left or not, for want of a service
	earlier int
	taken   int
	err     error
}

// left is an item without an answer, by its position in the batch, and why.
type left struct {
	at  int
	why *outcome.Failure
}

// answer takes the items that the journal has no answer to through the stages, and
// gives it the results.
func (r *Run) answer(ctx context.Context, records []*stage.Record, journal Journal) answered {
	if journal != nil {
		for _, rec := range records {
			if rec.Row.Err != nil {
				continue
			}
			if result, ok := journal.Answered(rec.Row); ok {
				rec.Earlier = &result
			}
		}
	}
	start := time.Now()
	ctx, done := r.begin(ctx, records)
	var a answered
	again, recalls := journal.(Recaller)
	if recalls {
		a.err = r.recall(ctx, records, again)
	}
	if r.remote == nil {
		r.graph.Run(ctx, records)
	} else if a.err = errors.Join(a.err, r.elsewhere(ctx, records)); a.err != nil {
		done(nil)
		return a
	}
	var fresh, taken []outcome.Result
	for i, rec := range records {
		result, isLeft := r.graph.Result(rec)
		if slices.ContainsFunc(result.Missing, func(f *outcome.Failure) bool { return sdk.CodeOf(f.Err) == sdk.CodeUnavailable }) {
			a.later = append(a.later, rec.Row.Line)
		}
		switch {
		case isLeft:
			a.left = append(a.left, left{i, result.Missing[0]})
			continue
		case rec.Taken:
			a.taken++
			taken = append(taken, result)
		case rec.Earlier != nil:
			a.earlier++
		default:
			if rec.Answer == nil { // else it is what the item took there, without waiting for a machine
				result.Latency = time.Since(start)
			}
			fresh = append(fresh, result)
		}
		a.results = append(a.results, result)
	}
	if ctx.Err() == nil {
		done(fresh)
	} else {
		done(nil)
	}
	if journal != nil && len(fresh) > 0 && ctx.Err() == nil { // else the batch was cut short
		a.err = errors.Join(a.err, journal.Keep(fresh))
	}
	if len(taken) > 0 && ctx.Err() == nil {
		a.err = errors.Join(a.err, again.Take(taken))
	}
	if a.err == nil && ctx.Err() == nil {
		a.err = r.graph.Settle(records)
	}
	if r.records != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, rec := range records {
			r.records[rec.Row.Line] = rec
		}
	}
	return a
}

// recall finds out which records have an answer of another run that holds. Those whose answer
// may hold are searched for that.
func (r *Run) recall(ctx context.Context, records []*stage.Record, again Recaller) error {
	var open []*stage.Record
	var before []outcome.Result
	for _, rec := range records {
		if rec.Row.Err != nil || rec.Earlier != nil || rec.Decided() {
			continue
		}
		result, holds, ok := again.Recall(rec.Row)
		switch {
		case !ok:
		case holds:
			rec.Earlier, rec.Taken = &result, true
		default:
			open, before = append(open, rec), append(before, result)
		}
	}
	if len(open) == 0 {
		return nil
	}
	r.graph.Search(ctx, open)
	basis := make([]outcome.Basis, len(before))
	for i := range before {
		basis[i] = before[i].Basis
	}
	holds, err := r.graph.Holds(ctx, open, basis)
	if err != nil {
		return err
	}
	for i, rec := range open {
		if holds[i] {
			rec.Earlier, rec.Taken = &before[i], true
		}
	}
	return nil
}

// begin says that those records begin their way that have no answer yet.
func (r *Run) begin(ctx context.Context, records []*stage.Record) (context.Context, func([]outcome.Result)) {
	items := make([]observe.Item, 0, len(records))
	for _, rec := range records {
		if rec.Earlier == nil {
			items = append(items, observe.Item{ID: rec.ID(), Trace: rec.Row.Trace})
		}
	}
	if len(items) == 0 {
		return ctx, func([]outcome.Result) {}
	}
	return r.observe.Batch(ctx, r.pipeline.Name, items)
}
