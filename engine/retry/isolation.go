package retry

import (
	"context"
	"errors"
	"fmt"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/wire"
)

// maxHung is how many rows may hang one by one before the rest of their batch is
// given up, where no call with any of its rows was answered: it is then not a row
// that hangs but the stage.
const maxHung = 4

// maxWaits is how often rows of a batch may wait in vain for a process that other rows
// hold up. Each of these holds it up for a limited time.
const maxWaits = 10

// isolation finds the rows that fail a batch.
type isolation struct {
	call     func(context.Context, []int) error
	answered bool  // some call was
	hung     int   // rows, each alone
	waited   int   // times, for other rows
	last     error // of these
}

// apart calls with rows and, where that fails as a whole for a reason that may lie
// in one of them, or in their number, with each half: the first half of all before
// the second, so that a single row is reached soon and what can be answered is. A
// half of what has ended the process is sent alone, so that it ends no others'
// calls; a half of what has run out of time has half of that time, and a row is blamed
// for that only where nothing else was asked of the stage meanwhile: another row may
// have held up its process. (What asks other machines waits for them, not for that.)
func (i *isolation) apart(ctx context.Context, at []int) []error {
	if !i.answered && i.hung == maxHung {
		return same(fmt.Errorf("%w; no other row of its batch was answered, so the stage is the cause", i.last), len(at))
	}
	calling := ctx
	if len(at) == 1 {
		calling = wire.Blamed(ctx)
	}
	err := i.call(calling, at)
	var rows sdk.RowErrors
	if err == nil || errors.As(err, &rows) {
		i.answered = true
		errs := make([]error, len(at))
		for n := range errs {
			errs[n] = rows[n]
		}
		return errs
	}
	halves, late := ctx, new(lateError)
	switch code := sdk.CodeOf(err); {
	case ctx.Err() != nil:
		return same(err, len(at))
	case errors.Is(err, sdk.ErrCrashed):
		halves = wire.Alone(ctx)
	case errors.As(err, &late) && late.unsent && i.waited < maxWaits:
		i.waited++
		return i.apart(ctx, at)
	case errors.As(err, &late) && len(at) == 1 && !late.network && !wire.IsAlone(ctx):
		return i.apart(wire.Alone(ctx), at)
	case TimedOut(err):
		if halves = withPart(ctx, partOf(ctx)/2); len(at) == 1 {
			i.hung, i.last = i.hung+1, err
		}
	case code != sdk.CodeInternal && code != sdk.CodeInvalid && code != sdk.CodeRefused:
		return same(err, len(at))
	}
	if len(at) == 1 {
		return []error{err}
	}
	half := len(at) / 2
	return append(i.apart(halves, at[:half]), i.apart(halves, at[half:])...)
}

func same(err error, n int) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}
