package api

import (
	"context"
	"errors"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/backoff"
)

// patience is how long a stage that opens waits for its service. The engine ends that
// wait after two minutes and says why; this is for callers that do not.
const patience = 3 * time.Minute

var openings = backoff.Backoff{First: 200 * time.Millisecond, Max: 10 * time.Second}

// Patiently makes a call while a stage opens, when the engine does not retry: again after
// errors that may pass, for a few minutes. It returns the last error.
func Patiently(ctx context.Context, call func() error) error {
	start := time.Now()
	for failures := 1; ; failures++ {
		err := call()
		coded := new(sdk.Error)
		if !errors.As(err, &coded) || coded.Code != sdk.CodeTransient {
			return err
		}
		pause := coded.RetryAfter + openings.Delay(failures)
		if time.Since(start) > patience || backoff.Sleep(ctx, pause) != nil {
			return err
		}
	}
}
