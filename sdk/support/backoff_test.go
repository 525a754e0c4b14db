package support

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

func TestDelay(t *testing.T) {
	b := Backoff{First: 50 * time.Millisecond, Max: 2 * time.Second}
	for failures, longest := range map[int]time.Duration{
		1: b.First, 2: 2 * b.First, 4: 8 * b.First, 6: 32 * b.First, 7: b.Max, 1000: b.Max, math.MaxInt: b.Max,
	} {
		distinct := map[time.Duration]bool{}
		for range 100 {
			d := b.Delay(failures)
			if d < longest/2 || d > longest {
				t.Fatalf("after %d failures: %v, want %v to %v", failures, d, longest/2, longest)
			}
			distinct[d] = true
		}
		if len(distinct) < 2 {
			t.Errorf("after %d failures all delays are the same", failures)
		}
	}
	for _, b := range []Backoff{{}, {First: time.Second}} {
		if d := b.Delay(3); d != 0 {
			t.Errorf("%+v: %v", b, d)
		}
	}
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if err := SleepFor(t.Context(), time.Second); err != nil || time.Since(start) != time.Second {
			t.Errorf("slept %v, %v", time.Since(start), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		if err := SleepFor(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("slept %v, %v", time.Since(start), err)
		}
	})
}
