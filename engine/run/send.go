package run

import (
	"context"
	"errors"
	"io"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/source"
)

// Sender takes batches to other machines, whose answers this process does not wait for.
type Sender interface {
	// Send hands over rows that are to be answered.
	Send(ctx context.Context, o Order) error
	// Know hands over rows with results that nobody has to be asked about.
	Know(ctx context.Context, rows []source.Row, results []outcome.Result) error
}

// Send hands all rows that next returns (io.EOF ends them) over to other machines, in their order, and
// returns how many these are. Those that cannot be used, that the journal has an answer to (nil: there
// is none) or that a person has decided about go there with their results. No stage is called.
func (r *Run) Send(ctx context.Context, next func() (source.Row, error), journal Journal, to Sender) (items int, err error) {
	for ended := false; !ended; {
		var open Order
		var known []source.Row
		var results []outcome.Result
		for max(len(open.Rows), len(known)) < r.batch {
			row, err := next()
			if ended = errors.Is(err, io.EOF); ended {
				break
			}
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return items, err
			}
			items++
			rec := r.graph.NewRecord(row)
			if journal != nil && row.Err == nil {
				if earlier, ok := journal.Answered(row); ok {
					rec.Earlier = &earlier
				}
			}
			if rec.Open() {
				open.Rows = append(open.Rows, row)
				continue
			}
			result, _ := r.graph.Result(rec)
			known, results = append(known, row), append(results, result)
		}
		if len(open.Rows) > 0 {
			err = to.Send(ctx, open)
		}
		if err == nil && len(known) > 0 {
			err = to.Know(ctx, known, results)
		}
		if err != nil {
			return items, err
		}
	}
	return items, nil
}
