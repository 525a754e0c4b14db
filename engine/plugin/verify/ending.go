package verify

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/sdk/conformance"
)

// killed ends the process in the midst of calls, which all have to be answered as before.
func (v *subject) killed(t conformance.T) error {
	l, r, err := v.load(t)
	if err != nil {
		return err
	}
	const many = 16
	want, err := l.Rows(t.Context(), 0, many)
	if err != nil {
		return err
	}
	before := r.PID()
	calls, ctx := errgroup.WithContext(t.Context())
	for range many {
		calls.Go(func() error { return l.Same(ctx, 0, want) })
	}
	if err := r.Kill(t.Context()); err != nil {
		return fmt.Errorf("process %d was killed, and did not end: %w", before, err)
	}
	if err := calls.Wait(); err != nil {
		return fmt.Errorf("calls to a process that was killed: %w", err)
	}
	if err := l.Same(t.Context(), 0, want); err != nil {
		return fmt.Errorf("after it was killed: %w", err)
	}
	if r.PID() == before {
		return fmt.Errorf("process %d was killed, and is there", before)
	}
	return nil
}

func (v *subject) hangUp(t conformance.T) error {
	return v.leaves(t, "its standard input had ended", (*running).HangUp)
}

func (v *subject) shutdown(t conformance.T) error {
	return v.leaves(t, "it was asked to end", (*running).Shutdown)
}

// leaves checks that a process ends by itself.
func (v *subject) leaves(t conformance.T, why string, end func(*running, context.Context) error) error {
	l, r, err := v.load(t)
	if err != nil {
		return err
	}
	if _, err := l.Rows(t.Context(), 0, 1); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), v.Options.Promptly, fmt.Errorf("it was still there after %v", v.Options.Promptly))
	defer cancel()
	if err := end(r, ctx); err != nil {
		return fmt.Errorf("after %s: %w", why, err)
	}
	return nil
}
