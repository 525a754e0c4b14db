package retry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/wire"
)

// A call of a stage that sets no timeout is bounded, so that one that hangs does
// not hold up everything for ever. A stage that asks other machines has longer: it
// waits for its limit within the call, and has a timeout of its own for each
// request.
const (
	defaultTimeout = 10 * time.Minute
	networkTimeout = time.Hour
)

// leastTime is what a part of a batch has at least, unless the stage's timeout is
// shorter: a call takes some time however few its rows are.
const leastTime = 5 * time.Second

var errNoAnswer = errors.New("no answer")

// lateError is that of a call that took too long.
type lateError struct {
	error
	network bool // of a stage that asks other machines: those may be the cause
	unsent  bool // it waited for a process that other rows held up
}

func (e *lateError) Unwrap() error { return e.error }

// TimedOut reports whether err says that a call took longer than Bounded allows.
func TimedOut(err error) bool { return errors.Is(err, errNoAnswer) }

type partKey struct{}

// withPart returns a context in which Bounded allows a part of the timeout.
func withPart(ctx context.Context, part float64) context.Context {
	return context.WithValue(ctx, partKey{}, part)
}

func partOf(ctx context.Context) float64 {
	if part, ok := ctx.Value(partKey{}).(float64); ok {
		return part
	}
	return 1
}

// Bounded makes one call of a stage within the stage's timeout, of which a part of
// a batch has as large a part. That it took longer is an error of sdk.CodeDeadline
// and TimedOut.
func Bounded(ctx context.Context, s *pipeline.Stage, call func(context.Context) error) error {
	timeout := s.Timeout
	switch {
	case timeout > 0:
	case s.Info.Network:
		timeout = networkTimeout
	default:
		timeout = defaultTimeout
	}
	limit := timeout
	if part := partOf(ctx); part < 1 {
		limit = max(time.Duration(float64(timeout)*part), min(timeout, leastTime))
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	within, turn := wire.WithTurn(within)
	err := call(within)
	// The stage has the same deadline, and may say that it has passed before within does.
	if at, _ := within.Deadline(); err != nil && ctx.Err() == nil && !time.Now().Before(at) {
		why := fmt.Errorf("%w within %s; timeout = \"...\" sets another limit", errNoAnswer, limit)
		if limit < timeout {
			why = fmt.Errorf("%w within %s, its part of the %s of its batch; timeout = \"...\" sets another limit", errNoAnswer, limit, timeout)
		}
		err = &sdk.Error{Code: sdk.CodeDeadline, Err: &lateError{why, s.Info.Network, turn.Waits()}}
	}
	return err
}
