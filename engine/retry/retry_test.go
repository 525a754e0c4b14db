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

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/waiting"
	"github.com/racflow/racflow/sdk"
)

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

// TestWaits: rows that wait for another try are reported, with the reason, though their
// service is there.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, got := time.Now(), []string(nil)
		reporter := waiting.New(func(r waiting.Report) {
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

// A stage that waits for a service has longer than one that works here, unless its
// block says how long.
func TestTimeouts(t *testing.T) {
	network := sdk.Stage{Network: true}
	for want, s := range map[time.Duration]*pipeline.Stage{
		defaultTimeout: {}, networkTimeout: {Info: network}, time.Minute: {Timeout: time.Minute, Info: network},
	} {
		if err := Bounded(t.Context(), s, func(ctx context.Context) error {
			at, ok := ctx.Deadline()
			if left := time.Until(at); !ok || left > want || left < want/2 {
				t.Errorf("the call has %s, want %s", left, want)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}

func TestBounded(t *testing.T) {
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	err := Bounded(t.Context(), &pipeline.Stage{Timeout: 1}, hang)
	if sdk.CodeOf(err) != sdk.CodeDeadline {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Bounded(ctx, &pipeline.Stage{}, hang); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
