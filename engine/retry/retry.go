package retry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/racflow/racflow/engine/waiting"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// Work is a stage's work on a batch.
type Work struct {
	Retries int // after a transient failure
	// Call works on some rows of the batch. It returns sdk.RowErrors, by position
	// among these rows, where single ones failed.
	Call func(ctx context.Context, rows []int) error
	// Ended is closed when nothing is to be begun any more; Cause says why. Both
	// may be nil.
	Ended <-chan struct{}
	Cause func() error
	// Stage is reported to Waits while rows wait for another try; both may be empty.
	Stage string
	Waits *waiting.Reporter
	// Again is called before the rows that failed are tried again; may be nil.
	Again func()
}

// maxWait is the longest that a stage may ask to be left alone. Rows that would
// have to wait longer fail, and say so. For as long it may ask again and again:
// that a row has to wait its turn is no failure of its own.
const maxWait = 2 * time.Minute

// Do works on rows 0 to n-1, and again on those that failed in a way that may
// pass. It returns an error or nil for each.
func (w Work) Do(ctx context.Context, n int) []error {
	errs := make([]error, n)
	at := make([]int, n) // those still to do
	for i := range at {
		at[i] = i
	}
	start, failed := time.Now(), make([]int, n) // how often
	var first time.Time                         // that rows had to wait
	for len(at) > 0 {
		results := (&isolation{call: w.Call}).apart(ctx, at)
		var again []int
		var wait time.Duration
		var why error // of the first that waits
		most := 1
		for i, n := range at {
			errs[n] = results[i]
			if errs[n] == nil {
				w.Waits.Answered(w.Stage)
			}
			var coded *sdk.Error
			if !errors.As(errs[n], &coded) || coded.Code != sdk.CodeTransient {
				continue
			}
			if coded.RetryAfter > maxWait {
				errs[n] = fmt.Errorf("%w; it asks to wait %s, longer than a run waits", errs[n], coded.RetryAfter)
				continue
			}
			if coded.RetryAfter == 0 || time.Since(start) >= maxWait {
				failed[n]++
			}
			if w.Retries == 0 || failed[n] > w.Retries {
				continue
			}
			again, why = append(again, n), cmp.Or(why, errs[n])
			wait, most = max(wait, coded.RetryAfter), max(most, failed[n])
		}
		if at = again; len(at) == 0 {
			break
		}
		if first.IsZero() {
			first = time.Now()
		}
		pause := wait + pauses.Delay(most)
		release := w.Waits.Hold(waiting.Wait{Stage: w.Stage, Calls: len(at), Why: why.Error(), Since: first, Next: time.Now().Add(pause), After: waiting.Soon})
		slept := w.sleep(ctx, pause)
		release()
		if slept && w.Again != nil {
			w.Again()
		}
		if !slept {
			for _, n := range at {
				if w.Cause == nil {
					break
				}
				if err := w.Cause(); err != nil {
					errs[n] = err
				}
			}
			break
		}
	}
	return errs
}

// pauses come on top of what a stage asks for: all that were sent away together
// are told the same time to wait.
var pauses = support.Backoff{First: 200 * time.Millisecond, Max: 200 * time.Millisecond << 7}

// sleep waits, unless all ends before.
func (w Work) sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-w.Ended:
	}
	return false
}
