package engine

import (
	"context"
	"slices"

	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/run"
	"github.com/racflow/racflow/engine/source"
)

// unasked are the lines of items that a service could not be asked about.
type unasked struct{ lines []int } // in order

func (w *unasked) add(line int) { w.lines = append(w.lines, line) }

// before returns the results that stand before all of them.
func (w *unasked) before(batch []outcome.Result) []outcome.Result { return batch[:w.cut(batch)] }

// after returns the others.
func (w *unasked) after(batch []outcome.Result) []outcome.Result { return batch[w.cut(batch):] }

func (w *unasked) cut(batch []outcome.Result) int {
	at := slices.IndexFunc(batch, func(r outcome.Result) bool { return len(w.lines) > 0 && r.Line >= w.lines[0] })
	if at < 0 {
		return len(batch)
	}
	return at
}

// askLater asks once more about these items: about the first, and about the others if its services are back. Then
// sink gets the results of the whole input, as the journal has them.
func (p *Pipeline) askLater(ctx context.Context, r *run.Run, book *journal.Journal, w *unasked, first outcome.Totals, sink func([]outcome.Result) error) (outcome.Totals, error) {
	r.OnLater(nil)
	p.workspace.control.TryAll()
	for _, lines := range [][]int{w.lines[:1], w.lines[1:]} {
		if len(lines) == 0 {
			break
		}
		totals, err := p.pass(ctx, r, book, lines, "asking again")
		first.Elapsed += totals.Elapsed
		if err != nil {
			return first, err
		}
		if totals.Provisional+totals.Left > 0 {
			break
		}
	}
	rows, err := p.Rows()
	if err != nil {
		return first, err
	}
	defer rows.Close() //nolint:errcheck // it was only read
	left := first.Missing[max(0, slices.IndexFunc(first.Missing, func(s outcome.Skipped) bool { return s.Left > 0 }))]
	totals, err := r.Kept(ctx, rows.Next, func(row source.Row) (outcome.Result, *outcome.Failure) {
		item := book.Item(row)
		if item.Status == journal.Unreached {
			return item.Result, &outcome.Failure{Stage: left.Stage, Err: left.First}
		}
		for i, f := range item.Result.Missing { // the journal does not have the reason
			if at := slices.IndexFunc(first.Missing, func(s outcome.Skipped) bool { return s.Stage == f.Stage }); at >= 0 {
				item.Result.Missing[i].Err = first.Missing[at].First
			}
		}
		return item.Result, nil
	}, sink)
	totals.Earlier, totals.Taken, totals.Skipped = first.Earlier, first.Taken, first.Skipped
	totals.Elapsed += first.Elapsed
	return totals, err
}
