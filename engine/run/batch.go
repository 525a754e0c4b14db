package run

import (
	"cmp"
	"context"

	"github.com/racflow/racflow/engine/observe"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/engine/stage"
	"github.com/racflow/racflow/sdk"
)

// Batch is items that travel together, outside of an input: whoever serves single items makes
// batches of them.
type Batch struct {
	Results []outcome.Result // of each row; of those that are left, nothing
	// Left are the rows, by position, that have no answer because a voter is missing
	// and the others have none; the error is that voter's.
	Left map[int]error
}

// Batch takes rows through the stages, together. Batches may be under way side by side. journal as
// in Items; nil: there is none.
func (r *Run) Batch(ctx context.Context, rows []source.Row, journal Journal) (Batch, error) {
	return r.together(ctx, rows, journal, nil)
}

// Follow is Batch for one row. each is called with what a stage made of it as soon as that is
// done, by several goroutines at once.
func (r *Run) Follow(ctx context.Context, row source.Row, journal Journal, each func(stage.Step)) (Batch, error) {
	return r.together(ctx, []source.Row{row}, journal, each)
}

func (r *Run) together(ctx context.Context, rows []source.Row, journal Journal, each func(stage.Step)) (Batch, error) {
	records := make([]*stage.Record, len(rows))
	for i, row := range rows {
		records[i] = r.graph.NewRecord(row)
		if each != nil {
			records[i].Follow(each)
		}
	}
	a := r.answer(ctx, records, journal)
	if err := ctx.Err(); err != nil {
		return Batch{}, err // it was cut short: failures are not the items'
	}
	b := Batch{Results: make([]outcome.Result, 0, len(rows))}
	for i, left := 0, a.left; i < len(rows); i++ {
		if len(left) > 0 && left[0].at == i {
			if b.Left == nil {
				b.Left = map[int]error{}
			}
			b.Left[i] = cmp.Or(r.graph.Err(), error(left[0].why))
			left = left[1:]
			b.Results = append(b.Results, outcome.Result{})
			continue
		}
		b.Results = append(b.Results, a.results[0])
		a.results = a.results[1:]
	}
	return b, a.err
}

// FoundAll is Found for rows that travel together: what was found for each, or why it failed.
func (r *Run) FoundAll(ctx context.Context, rows []source.Row) (found [][]sdk.Candidate, errs []error) {
	items, results := make([]observe.Item, len(rows)), make([]outcome.Result, len(rows))
	for i, row := range rows {
		items[i] = observe.Item{ID: r.graph.NewRecord(row).ID(), Trace: row.Trace}
		results[i] = outcome.Result{ID: items[i].ID, Text: row.Text, RetrievalOnly: true}
	}
	ctx, done := r.observe.Batch(ctx, r.pipeline.Name, items)
	found, errs = r.graph.FoundAll(ctx, rows)
	for i, err := range errs {
		if err != nil {
			results[i].Failure = &outcome.Failure{Err: err}
		}
	}
	if ctx.Err() != nil {
		results = nil // they were cut short
	}
	done(results)
	return found, errs
}

// Size is how many items travel together at most, and how many such batches are under way at a
// time.
func (r *Run) Size() (items, batches int) { return r.batch, r.window }

// Asks reports whether a stage of the run asks a service.
func (r *Run) Asks() bool { return stage.Calls(r.pipeline) > 0 }
