package bounded

import (
	"context"
	"time"
)

// This file lets a caller abandon work that cannot be stopped, such as reading from a pipe that
// nobody closes.

// grace is how long Interruptible waits for work that notices the end of its context.
const grace = 500 * time.Millisecond

// Interruptible returns the results of work. If ctx ends first, work has half a second to end.
// After that, Interruptible returns the cause of ctx as the error, and leaves work running in its
// goroutine. So work must not hold anything that others need, and its use of resources must be
// bounded.
func Interruptible[T any](ctx context.Context, work func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		v, err := work()
		done <- outcome{v, err}
	}()
	var late <-chan time.Time
	ended := ctx.Done()
	for {
		select {
		case o := <-done:
			return o.value, o.err
		case <-ended:
			ended, late = nil, time.After(grace)
		case <-late:
			var none T
			return none, context.Cause(ctx)
		}
	}
}
