package retry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/wire"
)

var errCrash = fmt.Errorf("x: %w", sdk.ErrCrashed)

// A row that ends the process fails alone. What may hold such a row is sent alone,
// and the process ends once for each halving.
func TestCrashIsIsolated(t *testing.T) {
	const n = 200
	for _, poison := range [][]int{{0}, {137}, {199}, {3, 4, 150}} {
		crashes := 0
		w := Work{Retries: 3, Call: func(ctx context.Context, rows []int) error {
			if wire.IsAlone(ctx) != (len(rows) < n) {
				t.Errorf("%d rows are sent alone: %v", len(rows), wire.IsAlone(ctx))
			}
			if slices.ContainsFunc(rows, func(row int) bool { return slices.Contains(poison, row) }) {
				crashes++
				return errCrash
			}
			return nil
		}}
		if d := cmp.Diff(poison, failedOf(w.Do(t.Context(), n))); d != "" {
			t.Errorf("failed (-want +got):\n%s", d)
		}
		if most := 9 * len(poison); crashes > most {
			t.Errorf("%v: the process ended %d times, more than %d", poison, crashes, most)
		}
	}
}

// A row that hangs fails alone, and within the time of one more batch.
func TestHangIsIsolated(t *testing.T) {
	const n, timeout = 64, 10 * time.Minute
	for _, c := range []struct {
		poison []int
		most   time.Duration
	}{
		{[]int{0}, 2 * timeout},
		{[]int{63}, 2 * timeout},
		{[]int{20, 41}, 3 * timeout},
		{[]int{8, 9, 10, 11, 12, 13}, 5 * timeout},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			errs := hanging(c.poison, timeout).Do(t.Context(), n)
			if d := cmp.Diff(c.poison, failedOf(errs)); d != "" {
				t.Errorf("failed (-want +got):\n%s", d)
			}
			if took := time.Since(start); took > c.most {
				t.Errorf("%v: it took %v, more than %v", c.poison, took, c.most)
			}
			if err := errs[c.poison[0]]; !TimedOut(err) || sdk.CodeOf(err) != sdk.CodeDeadline {
				t.Errorf("error %v", err)
			}
		})
	}
}

// A row is not blamed for the time that another one took of their process: it is asked
// alone before it is, and where it has waited to be sent it is asked again. That of a
// stage that asks other machines is asked once.
func TestAHeldUpRowIsNotBlamed(t *testing.T) {
	for name, c := range map[string]struct {
		network  bool
		waits    int // in vain
		answered bool
		calls    int
	}{
		"another row hangs":     {false, 0, true, 2},
		"the service is slow":   {true, 0, false, 1},
		"it waits":              {true, 7, true, 8},
		"it waits far too long": {false, 99, false, maxWaits + 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				w := Work{Call: func(ctx context.Context, rows []int) error {
					return Bounded(ctx, &pipeline.Stage{Timeout: time.Minute, Info: sdk.Stage{Network: c.network}}, func(ctx context.Context) error {
						calls++
						wire.Await(ctx, calls <= c.waits)
						if calls > c.waits && (c.waits > 0 || wire.IsAlone(ctx)) {
							return nil
						}
						<-ctx.Done()
						return ctx.Err()
					})
				}}
				if err := w.Do(t.Context(), 1)[0]; (err == nil) != c.answered || err != nil && !TimedOut(err) || calls != c.calls {
					t.Errorf("got %v after %d calls", err, calls)
				}
			})
		})
	}
}

// hanging is the work of a stage that hangs where some rows are; nil: with any.
func hanging(poison []int, timeout time.Duration) Work {
	return Work{Call: func(ctx context.Context, rows []int) error {
		return Bounded(ctx, &pipeline.Stage{Timeout: timeout}, func(ctx context.Context) error {
			if poison == nil || slices.ContainsFunc(rows, func(row int) bool { return slices.Contains(poison, row) }) {
				<-ctx.Done()
				return ctx.Err()
			}
			if wire.IsAlone(ctx) {
				return errors.New("a part of a batch that hangs is to wait for nobody")
			}
			return nil
		})
	}}
}

// A stage that hangs whatever it is given costs about the time of two batches.
func TestAStageThatHangsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 10 * time.Minute
		start := time.Now()
		errs := hanging(nil, timeout).Do(t.Context(), 64)
		if len(failedOf(errs)) != 64 || !TimedOut(errs[63]) {
			t.Errorf("errors %v", errs)
		}
		if took := time.Since(start); took > 2*timeout+timeout/8 {
			t.Errorf("it took %v", took)
		}
	})
}

// However short the timeout is, a part of a batch has it or a few seconds.
func TestPartsHaveTime(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{time.Second: time.Second, 8 * time.Second: leastTime, 80 * time.Second: 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			err := Bounded(withPart(t.Context(), .125), &pipeline.Stage{Timeout: timeout}, func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			})
			if took := time.Since(start); took != want || !TimedOut(err) {
				t.Errorf("%v: it took %v, want %v; %v", timeout, took, want, err)
			}
		})
	}
}

// A deadline that is not of the call says nothing of its rows.
func TestOtherDeadlines(t *testing.T) {
	calls := 0
	w := Work{Call: func(context.Context, []int) error {
		calls++
		return &sdk.Error{Code: sdk.CodeDeadline, Err: errors.New("the server was tried for a minute")}
	}}
	if errs := w.Do(t.Context(), 8); calls != 1 || len(failedOf(errs)) != 8 {
		t.Errorf("%d calls: %v", calls, errs)
	}
}

func failedOf(errs []error) (failed []int) {
	for i, err := range errs {
		if err != nil {
			failed = append(failed, i)
		}
	}
	return failed
}
