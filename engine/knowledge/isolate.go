package knowledge

import (
	"context"
	"errors"
	"fmt"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/retry"
	"github.com/racflow/racflow/sdk"
)

// worker calls a stage of a build with batches.
type worker struct {
	stage    *pipeline.Stage
	answered bool // to a call so far
}

// do calls with the n rows of a batch, within the stage's timeout, again where that
// may pass, and with parts of it where a row spoils it. It returns an error or nil
// for each row; one that ends the build where the stage is at fault and not a row:
// it answered nothing of this batch, and nothing before if that is one row.
func (w *worker) do(ctx context.Context, n int, call func(ctx context.Context, at []int) error) ([]error, error) {
	before, now := w.answered, false
	work := retry.Work{Retries: w.stage.Retries, Call: func(ctx context.Context, at []int) error {
		err := retry.Bounded(ctx, w.stage, func(ctx context.Context) error { return call(ctx, at) })
		now = now || err == nil || errors.As(err, new(sdk.RowErrors))
		return err
	}}
	errs := work.Do(ctx, n)
	w.answered = before || now
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	for _, err := range errs {
		if err != nil && (!now && (n > 1 || !before) || passes(err)) {
			return nil, err
		}
	}
	return errs, nil
}

// passes reports whether an error is none of the row's own: a later build can do
// better.
func passes(err error) bool {
	switch sdk.CodeOf(err) {
	case sdk.CodeTransient, sdk.CodeCancelled, sdk.CodeUnavailable, sdk.CodeStopped:
		return true
	case sdk.CodeDeadline:
		return !retry.TimedOut(err)
	}
	return false
}

// spread puts the results of some rows of a batch where they belong, as far as there
// are any beside err.
func spread[T any](to []T, at []int, found []T, err error) error {
	if err != nil && !errors.As(err, new(sdk.RowErrors)) {
		return err
	}
	if len(found) != len(at) {
		return fmt.Errorf("it returned %d results for %d rows", len(found), len(at))
	}
	for i, n := range at {
		to[n] = found[i]
	}
	return err
}

// pick returns those of all that stand at some places.
func pick[T any](all []T, at []int) []T {
	some := make([]T, len(at))
	for i, n := range at {
		some[i] = all[n]
	}
	return some
}

// seq is the numbers from 0 to n-1.
func seq(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
