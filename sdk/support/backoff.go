package support

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// This file says how long to wait before something that failed is tried
// again: twice as long after each failure, with jitter, so that callers that
// failed together do not return together. It does not count attempts and does
// not decide what is worth another one.

// Backoff is a series of delays. The zero value waits for nothing.
type Backoff struct {
	First time.Duration // the longest delay after the first failure; it doubles
	Max   time.Duration // the longest delay of all
}

// Delay returns the delay after a number of failures, which is 1 or more:
// between half and the whole of min(First·2^(failures-1), Max).
func (b Backoff) Delay(failures int) time.Duration {
	longest := b.First
	for range failures - 1 {
		if longest >= b.Max {
			break
		}
		longest *= 2
	}
	longest = min(longest, b.Max)
	return longest - Jitter(longest/2+1)
}

// Jitter returns a random duration that is shorter than d.
func Jitter(d time.Duration) time.Duration {
	if random := jitter.Load(); random != nil {
		return (*random)(d)
	}
	return rand.N(d)
}

var jitter atomic.Pointer[func(time.Duration) time.Duration] // nil in every program

// JitterBy lets a function choose what Jitter returns; nil: it is random. Only simulations do this.
func JitterBy(random func(time.Duration) time.Duration) {
	if random == nil {
		jitter.Store(nil)
		return
	}
	jitter.Store(&random)
}

// SleepFor waits. It returns the context's error where that ends before.
func SleepFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
