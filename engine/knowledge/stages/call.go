package stages

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/racflow/racflow/engine/pending"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/retry"
	"github.com/racflow/racflow/engine/waiting"
	"github.com/racflow/racflow/sdk"
)

// BatchBytes is how many bytes of text a call has at most, about: it has to fit a
// message.
const BatchBytes = 8 << 20

// Caller calls a stage of a build with batches.
type Caller struct {
	Stage *pipeline.Stage
	Name  string            // of the stage, as "embed.k"
	Waits *waiting.Reporter // hears what it waits for; nil: nobody does
	Later pending.Work      // of a stage that Pends, for the next batch; without Call
	// Probe asks the stage for what any stage of its kind can answer, where it answered
	// nothing that it was asked for: then it is the cause, or else the rows are.
	Probe    func(context.Context) error
	answered bool // to a call so far
}

// Call calls with the n rows of a batch, within the stage's timeout, again where that
// may help, and with parts of it where a row spoils it. It returns an error or nil
// for each row, or one that ends the build: the stage is the cause, not a row,
// where it answered nothing of this batch, nothing before if that is one row, and
// does not answer Probe. Rows that an earlier build left out come back together, and
// nothing else may be left to do.
func (c *Caller) Call(ctx context.Context, n int, call func(ctx context.Context, at []int) error) ([]error, error) {
	before, now := c.answered, false
	bounded := func(ctx context.Context, at []int) error {
		err := retry.Bounded(ctx, c.Stage, func(ctx context.Context) error { return call(ctx, at) })
		now = now || err == nil || errors.As(err, new(sdk.RowErrors))
		return err
	}
	if c.Stage.Info.Pends {
		c.Later.Call = bounded
		bounded = c.Later.Do
	}
	errs := retry.Work{Retries: c.Stage.Retries, Stage: c.Name, Waits: c.Waits, Call: bounded}.Do(ctx, n)
	c.answered = before || now
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	for _, err := range errs {
		if err != nil && Passes(err) {
			return nil, err
		}
	}
	for _, err := range errs {
		if err != nil && !now && (n > 1 || !before) && !c.works(ctx) {
			return nil, cmp.Or(ctx.Err(), err)
		}
		now = true
	}
	return errs, nil
}

// works reports whether the stage answers Probe.
func (c *Caller) works(ctx context.Context) bool {
	if c.Stage.Info.Pends {
		return false // nobody would wait for the answer
	}
	err := retry.Work{Retries: c.Stage.Retries, Stage: c.Name, Waits: c.Waits, Call: func(ctx context.Context, _ []int) error {
		return retry.Bounded(ctx, c.Stage, c.Probe)
	}}.Do(ctx, 1)[0]
	return err == nil || errors.As(err, new(sdk.RowErrors))
}

// Passes reports whether an error is not the row's own: a later build can do better.
func Passes(err error) bool {
	switch sdk.CodeOf(err) {
	case sdk.CodeTransient, sdk.CodeCancelled, sdk.CodeUnavailable, sdk.CodeStopped:
		return true
	case sdk.CodeDeadline:
		return !retry.TimedOut(err)
	}
	return false
}

// Spread puts the results for some rows of a batch in their places, as far as there
// are any beside err.
func Spread[T any](to []T, at []int, found []T, err error) error {
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

// Pick returns the rows of a batch at some places.
func Pick[T any](all []T, at []int) []T {
	some := make([]T, len(at))
	for i, n := range at {
		some[i] = all[n]
	}
	return some
}
