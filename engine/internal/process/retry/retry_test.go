package retry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/progress"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
	"github.com/racflow/racflow/sdk/wire"
)

var errCrash = fmt.Errorf("x: %w", sdk.ErrCrashed)

// A row that ends the process fails alone. Parts that may contain such a row are sent alone, and the
// process ends once for each halving.
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

// A row that hangs fails alone, and within the timeout; each further one takes half of it.
func TestHangIsIsolated(t *testing.T) {
	const n, timeout = 64, 2 * time.Minute
	for _, c := range []struct {
		poison []int
		most   time.Duration
	}{
		{[]int{0}, timeout},
		{[]int{63}, timeout},
		{[]int{20, 41}, timeout * 3 / 2},
		{[]int{8, 9, 10, 11, 12, 13}, timeout * 7 / 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			errs := hanging(c.poison, timeout, 400*time.Millisecond).Do(t.Context(), n)
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

// If a process gave no sign of life, its rows are sent one by one, and the process is ended once
// more.
func TestSilenceIsIsolated(t *testing.T) {
	silent, calls := 0, 0
	w := Work{Call: func(ctx context.Context, rows []int) error {
		if calls++; slices.Contains(rows, 137) {
			silent++
			return &sdk.Error{Code: sdk.CodeInternal, Err: &LostError{Silent: true}}
		}
		if !wire.IsAlone(ctx) || len(rows) > 1 {
			t.Errorf("%d rows are sent, alone: %v", len(rows), wire.IsAlone(ctx))
		}
		return nil
	}}
	if failed := failedOf(w.Do(t.Context(), 200)); !slices.Equal(failed, []int{137}) || silent != 2 || calls != 201 {
		t.Errorf("rows %v failed, the process was silent %d times in %d calls", failed, silent, calls)
	}
}

// Rows that take long, but each less than its share, all get answers, though no call with several of
// them would have ended in time.
func TestSlowRowsAreNotBlamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 2 * time.Minute
		if failed := failedOf(hanging([]int{}, timeout, timeout/2-time.Second).Do(t.Context(), 64)); failed != nil {
			t.Errorf("rows %v failed", failed)
		}
	})
}

// A row is not blamed for the time that another row took of their process. It is sent alone first,
// and sent again if it had to wait. A stage that asks other machines gets the row only once.
func TestAHeldUpRowIsNotBlamed(t *testing.T) {
	for name, c := range map[string]struct {
		network  bool
		waits    int // calls without an answer
		late     int // calls that are sent late
		answered bool
		calls    int
	}{
		"another row hangs":     {false, 0, 0, true, 2},
		"the service is slow":   {true, 0, 0, false, 1},
		"it waits":              {true, 7, 0, true, 8},
		"it waits far too long": {false, 99, 0, false, maxHeld + 2},
		"it is sent late":       {false, 0, 3, true, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				w := Work{Call: func(ctx context.Context, rows []int) error {
					return Patience{time.Minute, c.network}.Bounded(ctx, 1, func(ctx context.Context) error {
						return Resend(ctx, "", func(ctx context.Context, sent func()) error {
							if calls++; calls <= c.late { // it is sent when half of its time is over
								time.Sleep(7 * time.Second)
							}
							if calls > c.waits {
								sent()
							}
							if calls > max(c.waits, c.late) && (c.waits+c.late > 0 || wire.IsAlone(ctx)) {
								return nil
							}
							<-ctx.Done()
							return ctx.Err()
						})
					})
				}}
				if err := w.Do(t.Context(), 1)[0]; (err == nil) != c.answered || err != nil && !TimedOut(err) || calls != c.calls {
					t.Errorf("got %v after %d calls", err, calls)
				}
			})
		})
	}
}

// hanging is the work of a stage that takes some time for each row, and hangs on certain rows; nil:
// on every row.
func hanging(poison []int, timeout, each time.Duration) Work {
	return Work{Call: func(ctx context.Context, rows []int) error {
		return Patience{timeout, false}.Bounded(ctx, len(rows), func(ctx context.Context) error {
			if poison == nil || slices.ContainsFunc(rows, func(row int) bool { return slices.Contains(poison, row) }) {
				<-ctx.Done()
				return ctx.Err()
			}
			return support.SleepFor(ctx, each*time.Duration(len(rows)))
		})
	}}
}

// A stage that hangs on every row is given up after a few rows.
func TestAStageThatHangsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 2 * time.Minute
		start := time.Now()
		errs := hanging(nil, timeout, 0).Do(t.Context(), 64)
		if len(failedOf(errs)) != 64 || !TimedOut(errs[63]) {
			t.Errorf("errors %v", errs)
		}
		if took := time.Since(start); took > timeout*9/4 {
			t.Errorf("it took %v", took)
		}
	})
}

// A deadline that does not belong to the call says nothing about its rows.
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

func TestDo(t *testing.T) {
	busy := sdk.Transient(errors.New("busy"), 0)
	tests := []struct {
		name    string
		retries int
		call    func(call int, rows []int) error
		calls   [][]int
		failed  []int
	}{
		{"works", 2, func(int, []int) error { return nil }, [][]int{{0, 1, 2}}, nil},
		{"a row passes later", 2, func(n int, _ []int) error {
			if n == 0 {
				return sdk.RowErrors{1: busy}
			}
			return nil
		}, [][]int{{0, 1, 2}, {1}}, nil},
		{"a row never passes", 2, func(_ int, rows []int) error { return sdk.RowErrors{len(rows) - 1: busy} }, [][]int{{0, 1, 2}, {2}, {2}}, []int{2}},
		{"no retries", 0, func(int, []int) error { return busy }, [][]int{{0, 1, 2}}, []int{0, 1, 2}},
		{"for good", 2, func(int, []int) error { return sdk.RowErrors{0: sdk.Invalid(errors.New("no"))} }, [][]int{{0, 1, 2}}, []int{0}},
		{"one spoils the batch", 2, func(_ int, rows []int) error {
			if slices.Contains(rows, 1) {
				return errors.New("no")
			}
			return nil
		}, [][]int{{0, 1, 2}, {0}, {1, 2}, {1}, {2}}, []int{1}},
		{"it is not worth another try", 2, func(int, []int) error { return &sdk.Error{Code: sdk.CodeUnavailable, Err: busy} }, [][]int{{0, 1, 2}}, []int{0, 1, 2}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var calls [][]int
			w := Work{Retries: test.retries, Call: func(_ context.Context, rows []int) error {
				calls = append(calls, slices.Clone(rows))
				return test.call(len(calls)-1, rows)
			}}
			var failed []int
			for i, err := range w.Do(t.Context(), 3) {
				if err != nil {
					failed = append(failed, i)
				}
			}
			if d := cmp.Diff(test.calls, calls); d != "" {
				t.Errorf("calls (-want +got):\n%s", d)
			}
			if d := cmp.Diff(test.failed, failed); d != "" {
				t.Errorf("failed (-want +got):\n%s", d)
			}
		})
	}
}

// TestWaits: rows that wait for another try are reported, with the reason, although their service is
// up.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, got := time.Now(), []string(nil)
		reporter := progress.NewWaitReporter(func(r progress.LongWait) {
			got = append(got, fmt.Sprintf("%d %s", time.Since(start)/time.Second, strings.TrimRight(r.String(), "0123456789 s")))
		})
		defer reporter.Close()
		busy := sdk.Transient(errors.New("the server answered 500: it went wrong"), 20*time.Second)
		w := Work{Retries: 5, Stage: "sample.llm", Waits: reporter, Call: func(_ context.Context, rows []int) error {
			if time.Since(start) < 97*time.Second {
				return busy
			}
			return nil
		}}
		for i, err := range w.Do(t.Context(), 3) {
			if err != nil {
				t.Errorf("row %d: %v", i, err)
			}
		}
		time.Sleep(time.Hour)
		var want []string
		for _, at := range []int{5, 35, 65, 95} {
			want = append(want, fmt.Sprintf("%d waiting for sample.llm: 3 calls, the server answered 500: it went wrong, next try in", at))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("reported (-want +got):\n%s", d)
		}
	})
}

func TestDoEnds(t *testing.T) {
	ended, cause := make(chan struct{}), errors.New("it is over")
	w := Work{Retries: 9, Ended: ended, Cause: func() error { return cause }, Call: func(context.Context, []int) error {
		close(ended) // a second call would panic
		return sdk.Transient(errors.New("busy"), maxWait)
	}}
	if errs := w.Do(t.Context(), 1); errs[0] != cause {
		t.Errorf("error %v", errs[0])
	}
}

// A call has a share of its stage's timeout, and a single row a larger share: no call can use up the
// time that later calls need.
func TestShares(t *testing.T) {
	for _, c := range []struct {
		network bool
		rows    int
		alone   bool
		want    time.Duration
	}{
		{false, 64, false, 30 * time.Second},
		{false, 1, false, 30 * time.Second},
		{false, 64, true, 30 * time.Second},
		{false, 1, true, time.Minute},
		{true, 1, false, time.Minute},
		{true, 64, false, time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			if c.alone {
				ctx = wire.Alone(ctx)
			}
			start := time.Now()
			err := Patience{2 * time.Minute, c.network}.Bounded(ctx, c.rows, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
			if took := time.Since(start); took != c.want || sdk.CodeOf(err) != sdk.CodeDeadline {
				t.Errorf("%+v had %v, want %v: %v", c, took, c.want, err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (Patience{Timeout: time.Minute}).Bounded(ctx, 1, func(ctx context.Context) error { return ctx.Err() }); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
