package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

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
	return longest - rand.N(longest/2+1)
}

// Sleep waits. It returns the context's error where that ends before.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
