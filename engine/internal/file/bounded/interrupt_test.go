package bounded

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestDo(t *testing.T) {
	stop := errors.New("stop")
	for name, test := range map[string]struct {
		takes, end time.Duration // of the work and of the context
		want       int
		err        error
		after      time.Duration
	}{
		"work ends first":        {takes: 1, end: time.Hour, want: 1, after: 1},
		"work notices the end":   {takes: time.Second + grace/2, end: time.Second, want: 1, after: time.Second + grace/2},
		"work does not notice":   {takes: time.Hour, end: time.Second, err: stop, after: time.Second + grace},
		"context ended long ago": {takes: time.Hour, end: 0, err: stop, after: grace},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeoutCause(t.Context(), test.end, stop)
				defer cancel()
				start := time.Now()
				got, err := Interruptible(ctx, func() (int, error) {
					time.Sleep(test.takes)
					return 1, nil
				})
				if took := time.Since(start); got != test.want || !errors.Is(err, test.err) || took != test.after {
					t.Errorf("got %d, %v after %v, want %d, %v after %v", got, err, took, test.want, test.err, test.after)
				}
				time.Sleep(test.takes) // for the abandoned work
			})
		})
	}
}
