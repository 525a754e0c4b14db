package api

import (
	"context"
	"iter"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/sdk"
)

// together is how many rows of a batch are worked on at a time. The engine
// sends them one by one and sets the limits; this is for those who do not.
const together = 64

// Rows works on rows at the same time. An error is that of the row alone: the
// results come with sdk.RowErrors then. Where ctx has ended it is that of all.
func Rows[R, T any](ctx context.Context, rows []R, work func(context.Context, R) (T, error)) ([]T, error) {
	results := make([]T, len(rows))
	errs := make([]error, len(rows))
	var calls errgroup.Group
	calls.SetLimit(together)
	for i, row := range rows {
		calls.Go(func() error {
			if errs[i] = ctx.Err(); errs[i] == nil {
				results[i], errs[i] = work(ctx, row)
			}
			return nil
		})
	}
	_ = calls.Wait() // errors are of single rows
	failed := sdk.RowErrors{}
	for i, err := range errs {
		if err != nil {
			failed[i] = err
		}
	}
	return Results(ctx, results, failed)
}

// Results returns the results of rows of which some have failed. Where ctx has
// ended that is the error of all.
func Results[T any](ctx context.Context, results []T, failed sdk.RowErrors) ([]T, error) {
	switch {
	case len(failed) == 0:
		return results, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return results, failed
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
