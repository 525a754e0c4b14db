package support

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"time"
)

// This file computes how long to wait before a failed call is tried again: twice as long after each
// failure, with jitter, so that callers that failed together do not return together. It does not
// count attempts, and does not decide which failures deserve another attempt.

// Backoff is a series of delays. The zero value does not wait.
type Backoff struct {
	First time.Duration // the longest delay after the first failure; it doubles
	Max   time.Duration // the upper limit of all delays
}

// Delay returns the delay after a number of failures, which is 1 or more. It lies between half and
// the whole of min(First·2^(failures-1), Max).
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

// Jitter returns a random part of a positive duration. It draws from crypto/rand, so that a test can
// control it (testing/cryptotest).
func Jitter(d time.Duration) time.Duration {
	var b [8]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	return time.Duration(binary.LittleEndian.Uint64(b[:]) % uint64(d))
}

// SleepFor waits. If the context ends first, it returns the context's error.
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
