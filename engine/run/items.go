package run

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/source"
)

// Items takes all rows that next returns (io.EOF ends them) through the pipeline and
// gives the results to sink in the order of the input, a batch at a time, from one
// goroutine. It ends early when next or sink fails or ctx is done; what sink got until
// then is complete.
//
// Rows that the journal has an answer to are not worked on again, and what becomes of
// the others is kept in it; nil: there is none.
//
// A stage that has to stop (sdk.CodeStopped) is not called again; one whose service cannot be asked about an
// item now (sdk.CodeUnavailable) is asked about the next ones. The other voters
// answer the items that need it, which Result.Missing says; those for which they have
// no acceptable answer are left. Where the election cannot be held without the stage,
// the run ends early: what does not need it is still answered, and the error is that
// stage's.
func (r *Run) Items(ctx context.Context, next func() (source.Row, error), journal Journal, sink func([]outcome.Result) error) (outcome.Totals, error) {
	start := time.Now()
	var totals outcome.Totals
	g, ctx := errgroup.WithContext(ctx)
	rows := make(chan source.Row)
	readErr := make(chan error, 1)
	var inputErr error // returned after everything read before it has been answered
	// This goroutine may be stuck in a read of standard input when everything else has
	// ended, so nothing waits for it.
	go func() { readErr <- read(ctx, next, rows) }()
	queue := make(chan chan answered, r.window)
	under := underway{idle: make(chan struct{}, 1)}
	defer under.all.Wait() // the journal is complete with this call
	g.Go(func() error {
		defer close(queue)
		for {
			records := r.gather(ctx, rows, &under)
			if len(records) == 0 || r.graph.Err() != nil {
				break
			}
			done := make(chan answered, 1)
			select {
			case queue <- done:
			case <-ctx.Done():
				return ctx.Err()
			}
			under.begin()
			go func() {
				defer under.end()
				done <- r.answer(ctx, records, journal)
			}()
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if r.graph.Err() == nil { // else the reader is not done
			inputErr = <-readErr
		}
		return nil
	})
	g.Go(func() error {
		for done := range queue {
			batch := <-done
			if ctx.Err() != nil {
				return ctx.Err() // the batch was cut short: its failures are not the items'
			}
			if batch.err != nil {
				return batch.err
			}
			for _, result := range batch.results {
				totals.Add(result)
			}
			totals.Earlier += batch.earlier
			totals.Taken += batch.taken
			for _, l := range batch.left {
				totals.AddLeft(l.why)
			}
			for _, line := range batch.later {
				if r.later != nil {
					r.later(line)
				}
			}
			if err := sink(batch.results); err != nil {
				return err
			}
		}
		return nil
	})
	err := g.Wait()
	if err == nil {
		if err = r.graph.Err(); err == nil {
			err = inputErr
		}
	}
	r.sum(&totals, start)
	return totals, err
}
