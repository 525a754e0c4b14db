package retry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/racflow/racflow/engine/internal/progress"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
	"github.com/racflow/racflow/sdk/wire"
)

// maxHung is how many rows may hang, each alone, before the rest of their batch is given up. It
// applies as long as no call with rows of the batch was answered: then the stage hangs, not a row.
const maxHung = 4

// maxHeld is how often in a row other calls may hold up the calls of a batch. Each time they do so
// for a limited time.
const maxHeld = 10

// isolation finds the rows that fail a batch.
type isolation struct {
	call     func(context.Context, []int) error
	answered bool  // some call was answered
	hung     int   // rows that hung alone
	worn     int   // processes in a row that a single row ended after they had answered others
	held     int   // calls in a row that others held up
	last     error // error of the last row that hung
}

// apart calls with rows. If the call fails as a whole, the cause may be one of the rows, or their
// number. Then apart calls with each half: the first half completely before the second, to reach a
// single row soon and answer as much as possible. After a crash of the process, a half is sent alone,
// so that it ends no other calls. After a timeout, or if the process gave no sign of life, each row
// is sent alone: a hanging row then costs the time of one more call. With halves, each half that
// holds it would cost as much.
//
// A single row is blamed for a timeout only if nothing else ran in the stage meanwhile: another row
// may have held up its process. (A stage that asks other machines waits for them, not for its
// process.) A single row is also not blamed for the end of a process that had answered other rows,
// such as a process that ends after every hundred: it is sent alone again, a few times.
func (i *isolation) apart(ctx context.Context, at []int) []error {
	if !i.answered && i.hung == maxHung {
		return same(fmt.Errorf("%w; no other row of its batch was answered, so the stage is the cause", i.last), len(at))
	}
	err := i.call(ctx, at)
	var rows sdk.RowErrors
	if err == nil || errors.As(err, &rows) {
		i.answered, i.held, i.worn = true, 0, 0
		errs := make([]error, len(at))
		for n := range errs {
			errs[n] = rows[n]
		}
		return errs
	}
	halves, late, lost := ctx, new(lateError), new(LostError)
	errors.As(err, &lost)
	switch code := sdk.CodeOf(err); {
	case ctx.Err() != nil:
		return same(err, len(at))
	case errors.As(err, &late) && late.held && i.held < maxHeld:
		i.held++
		return i.apart(ctx, at)
	case TimedOut(err) && len(at) == 1 && (late.network || wire.IsAlone(ctx)):
		i.hung, i.last = i.hung+1, err
		return []error{err}
	case lost.Worn && len(at) == 1 && i.worn < maxWorn:
		i.worn++
		return i.apart(wire.Alone(ctx), at)
	case TimedOut(err), len(at) > 1 && lost.Silent:
		if !late.network {
			ctx = wire.Alone(ctx)
		}
		var errs []error
		for n := range at {
			errs = append(errs, i.apart(ctx, at[n:n+1])...)
		}
		return errs
	case errors.Is(err, sdk.ErrCrashed):
		halves = wire.Alone(ctx)
	case code != sdk.CodeInternal && code != sdk.CodeInvalid && code != sdk.CodeRefused:
		return same(err, len(at))
	}
	if len(at) == 1 {
		i.worn = 0
		return []error{err}
	}
	half := len(at) / 2
	return append(i.apart(halves, at[:half]), i.apart(halves, at[half:])...)
}

func same(err error, n int) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// Work is a stage's work on a batch.
type Work struct {
	Retries int // after a transient failure
	// Call works on some rows of the batch. It returns sdk.RowErrors, by position among these rows,
	// if single rows failed.
	Call func(ctx context.Context, rows []int) error
	// Ended is closed when no call may begin any more; Cause says why. Both may be nil.
	Ended <-chan struct{}
	Cause func() error
	// Stage is reported to Waits while rows wait for another try; both may be empty.
	Stage string
	Waits *progress.WaitReporter
	// Again is called before failed rows are tried again; may be nil.
	Again func()
}

// maxPause is the longest pause that a stage may ask for while calls wait that have not been sent
// (package governor). Rows that would have to wait longer fail with sdk.CodeUnavailable.
const maxPause = 5 * time.Minute

// maxWait is the time during which a stage may ask for pauses again and again: a row that has to wait
// for its turn has not failed.
const maxWait = 2 * time.Minute

// Do works on rows 0 to n-1, and again on rows whose failure may pass. It returns an error or nil for
// each row.
func (w Work) Do(ctx context.Context, n int) []error {
	t := tries{Work: w, errs: make([]error, n), failed: make([]int, n), start: time.Now()}
	at := make([]int, n) // rows still to do
	for i := range at {
		at[i] = i
	}
	var first time.Time // start of the first wait
	for len(at) > 0 {
		results := (&isolation{call: w.Call}).apart(ctx, at)
		again := t.count(at, results)
		if at = again.rows; len(at) == 0 {
			break
		}
		if first.IsZero() {
			first = time.Now()
		}
		pause := again.wait + pauses.Delay(again.most)
		release := w.Waits.Hold(progress.Wait{Stage: w.Stage, Calls: len(at), Why: again.why.Error(), Since: first, Next: time.Now().Add(pause), After: progress.WaitSoon})
		slept := w.sleep(ctx, pause)
		release()
		if !slept {
			t.end(at)
			break
		}
		if w.Again != nil {
			w.Again()
		}
	}
	return t.errs
}

// tries counts the failures of rows.
type tries struct {
	Work
	errs   []error // by row
	failed []int   // how often each failed
	start  time.Time
}

// another holds the rows to try again.
type another struct {
	rows []int
	wait time.Duration // that their stage asks for
	most int           // highest number of failures of a row, at least 1
	why  error         // error of the first row
}

// count records the results of rows, and returns the rows to try again.
func (t *tries) count(at []int, results []error) another {
	again := another{most: 1}
	for i, n := range at {
		t.errs[n] = results[i]
		if results[i] == nil {
			t.Waits.Answered(t.Stage)
		}
		var coded *sdk.Error
		if !errors.As(results[i], &coded) || coded.Code != sdk.CodeTransient {
			continue
		}
		if coded.RetryAfter > maxPause {
			// No row is to blame: rows that this wait keeps from being sent get this code, too.
			t.errs[n] = &sdk.Error{Code: sdk.CodeUnavailable, Err: fmt.Errorf("%w; it asks to wait %s, longer than a run waits", results[i], coded.RetryAfter)}
			continue
		}
		if coded.RetryAfter == 0 || time.Since(t.start) >= maxWait {
			t.failed[n]++
		}
		if t.Retries == 0 || t.failed[n] > t.Retries {
			continue
		}
		again.rows, again.why = append(again.rows, n), cmp.Or(again.why, results[i])
		again.wait, again.most = max(again.wait, coded.RetryAfter), max(again.most, t.failed[n])
	}
	return again
}

// end sets, for rows that are not tried again, the cause that ended all work.
func (t *tries) end(at []int) {
	if t.Cause == nil {
		return
	}
	if err := t.Cause(); err != nil {
		for _, n := range at {
			t.errs[n] = err
		}
	}
}

// pauses are added to the pause that a stage asks for: rows rejected together get the same one.
var pauses = support.Backoff{First: 200 * time.Millisecond, Max: 200 * time.Millisecond << 7}

// sleep waits, and returns false if the context or the work ends before.
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

var errNoAnswer = errors.New("no answer")

// lateError is the error of a call that took too long.
type lateError struct {
	error
	network bool // the stage asks other machines, which may be the cause
	held    bool // the call waited for others before it was sent
}

func (e *lateError) Unwrap() error { return e.error }

// TimedOut reports whether err says that a call took longer than Patience.Bounded allows.
func TimedOut(err error) bool { return errors.Is(err, errNoAnswer) }

// Patience says how long a row of a stage may take.
type Patience struct {
	Timeout time.Duration
	Network bool // the stage asks other machines
}

// Bounded makes one call of a stage with a number of rows, within its share of the timeout. For a row
// that hangs, the shares of all calls with this row make up the timeout: a quarter for its batch, for
// an enricher another quarter for its document, and half for the row alone. A stage that asks other
// machines is not asked about a single row again, so its batch gets half. The rest of the timeout is
// for the other rows of the batch, and for processes that start anew.
//
// A timeout is an error with sdk.CodeDeadline; TimedOut reports it.
func (p Patience) Bounded(ctx context.Context, rows int, call func(context.Context) error) error {
	limit := p.Timeout / 4
	if p.Network || rows == 1 && wire.IsAlone(ctx) {
		limit = p.Timeout / 2
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	t := new(turn)
	err := call(context.WithValue(within, turnKey{}, t))
	// The stage has the same deadline, and may report it before within does.
	if at, _ := within.Deadline(); err != nil && ctx.Err() == nil && !time.Now().Before(at) {
		why := fmt.Errorf("%w within %s, its share of timeout = %q", errNoAnswer, limit, p.Timeout)
		waited, of := t.result()
		if of != "" {
			why = fmt.Errorf("%s: %w", of, why)
		}
		// A call that others held up for more than a moment did not have its time.
		err = &sdk.Error{Code: sdk.CodeDeadline, Err: &lateError{why, p.Network, waited > limit/10}}
	}
	return err
}
