package retry

import (
	"context"
	"fmt"
	"time"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// A call of a stage that sets no timeout is bounded, so that one that hangs does
// not hold up everything for ever. A stage that asks other machines has longer: it
// waits for its limit within the call, and has a timeout of its own for each
// request.
const (
	defaultTimeout = 10 * time.Minute
	networkTimeout = time.Hour
)

// Bounded makes one call of a stage within the stage's timeout. That it took
// longer is an error of sdk.CodeDeadline.
func Bounded(ctx context.Context, s *pipeline.Stage, call func(context.Context) error) error {
	timeout := s.Timeout
	switch {
	case timeout > 0:
	case s.Info.Network:
		timeout = networkTimeout
	default:
		timeout = defaultTimeout
	}
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := call(within)
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		err = &sdk.Error{Code: sdk.CodeDeadline, Err: fmt.Errorf("no answer within %s; timeout = \"...\" sets another limit", timeout)}
	}
	return err
}
