package run

import (
	"context"
	"slices"

	"github.com/racflow/racflow/engine/source"
)

// Journal keeps results as they are reached, so that a run that ended early can
// be resumed.
type Journal interface {
	// Answered returns what an earlier part of the run answered to a row; of the
	// result only what the stages made of it.
	Answered(source.Row) (Result, bool)
	// Keep is given results as soon as they are reached, in any order, by several
	// goroutines at once.
	Keep([]Result) error
}

// answered is what became of a batch.
type answered struct {
	results       []Result // without those that are left
	earlier, left int
	err           error
}

// journal answers those records that the journal has no answer to, and gives it
// the results.
func (r *Run) journal(ctx context.Context, records []*record, journal Journal) answered {
	if journal == nil {
		return r.sorted(r.answer(ctx, records))
	}
	for _, rec := range records {
		if rec.row.Err != nil {
			continue
		}
		if result, ok := journal.Answered(rec.row); ok {
			rec.earlier = &result
		}
	}
	batch := r.sorted(r.answer(ctx, records))
	if ctx.Err() != nil {
		return batch // it was cut short
	}
	fresh := batch.results
	if batch.earlier > 0 {
		fresh = nil
		for _, result := range batch.results {
			if !result.earlier {
				fresh = append(fresh, result)
			}
		}
	}
	if len(fresh) > 0 {
		batch.err = journal.Keep(fresh)
	}
	return batch
}

// sorted tells apart what an earlier part of the run answered and what is left
// for a later one.
func (r *Run) sorted(results []Result) answered {
	a := answered{results: results}
	for _, result := range results {
		if result.earlier {
			a.earlier++
		}
		if result.left {
			a.left++
		}
	}
	if a.left > 0 {
		a.results = slices.DeleteFunc(results, func(result Result) bool { return result.left })
	}
	return a
}
