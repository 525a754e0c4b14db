package run

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/source"
)

// Kept gives sink the results of all rows that next returns (io.EOF ends them), in their
// order and a batch at a time, where each has been answered before: kept says what became of
// a row, of which the result needs no more than what the stages made of it, or for want of what it
// is left. No stage is called.
func (r *Run) Kept(ctx context.Context, next func() (source.Row, error), kept func(source.Row) (outcome.Result, *outcome.Failure), sink func([]outcome.Result) error) (outcome.Totals, error) {
	start := time.Now()
	var totals outcome.Totals
	for ended := false; !ended; {
		var batch []outcome.Result
		for len(batch) < batchSize {
			row, err := next()
			if ended = errors.Is(err, io.EOF); ended {
				break
			}
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return totals, err
			}
			rec := r.graph.NewRecord(row)
			if row.Err == nil {
				earlier, left := kept(row)
				if left != nil {
					totals.AddLeft(left)
					continue
				}
				rec.Earlier = &earlier
			}
			result, _ := r.graph.Result(rec)
			totals.Add(result)
			batch = append(batch, result)
		}
		if err := sink(batch); err != nil {
			return totals, err
		}
	}
	r.sum(&totals, start)
	return totals, nil
}

// sum sets what is known of a run once its items are done.
func (r *Run) sum(totals *outcome.Totals, start time.Time) {
	for _, f := range r.graph.Halted() {
		outcome.Count(&totals.Missing, f, 0)
	}
	totals.Elapsed, totals.Stages, totals.Distributions = time.Since(start), r.graph.Times(), r.graph.Distributions()
}
