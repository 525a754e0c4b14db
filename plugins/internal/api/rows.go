package api

import (
	"context"
	"iter"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/sdk"
)

// together is how many rows of a batch are worked on at a time. The engine sends
// single rows and sets limits; this is for callers that do not.
const together = 64

// Rows works on rows at the same time. An error is that of its row alone: the
// results come with sdk.RowErrors then. Where ctx has ended its error is that of all.
func Rows[R, T any](ctx context.Context, rows []R, work func(context.Context, R) (T, error)) ([]T, error) {
	results := make([]T, len(rows))
	var failed Failed
	var calls errgroup.Group
	calls.SetLimit(together)
	for i, row := range rows {
		calls.Go(func() error {
			err := ctx.Err()
			if err == nil {
				results[i], err = work(ctx, row)
			}
			if err != nil {
				failed.Add(err, i)
			}
			return nil
		})
	}
	_ = calls.Wait() // errors are of single rows
	return Results(ctx, results, &failed)
}

// Results returns the results of rows of which some have failed. Where ctx has
// ended its error is that of all.
func Results[T any](ctx context.Context, results []T, failed *Failed) ([]T, error) {
	switch {
	case len(failed.rows) == 0:
		return results, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return results, failed.rows
}

// Failed are the errors of rows that are worked on at the same time. Its zero value
// is ready.
type Failed struct {
	mu   sync.Mutex
	rows sdk.RowErrors
	over error
}

// Add sets the error of rows.
func (f *Failed) Add(err error, rows ...int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rows == nil {
		f.rows = sdk.RowErrors{}
	}
	for _, row := range rows {
		f.rows[row] = err
	}
	if f.over == nil && Over(err) {
		f.over = err
	}
}

// Over is an error among them after which no other row can succeed; nil: there is none.
func (f *Failed) Over() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.over
}

// Over reports whether no other call will be permitted after an error: the service is
// down, or the run has to end.
func Over(err error) bool {
	code := sdk.CodeOf(err)
	return err != nil && (code == sdk.CodeUnavailable || code == sdk.CodeStopped)
}

// Documents returns the rows of each document: from one row up to another.
func Documents(passages []sdk.Passage) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		from := 0
		for to := range passages {
			if passages[to].Document != passages[from].Document {
				if !yield(from, to) {
					return
				}
				from = to
			}
		}
		if from < len(passages) {
			yield(from, len(passages))
		}
	}
}
