package retry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/show/terminal"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
	"github.com/racflow/racflow/sdk/wire"
)

// maxHung is how many rows may hang one by one before the rest of their batch is
// given up, where no call with any of its rows was answered: it is then not a row
// that hangs but the stage.
const maxHung = 4

// maxWaits is how often rows of a batch may wait in vain for a process that other rows
// hold up. Each of these holds it up for a limited time.
const maxWaits = 10

// isolation finds the rows that fail a batch.
type isolation struct {
	call     func(context.Context, []int) error
	answered bool  // some call was
	hung     int   // rows, each alone
	waited   int   // times, for other rows
	last     error // of these
}

// apart calls with rows and, where that fails as a whole for a reason that may lie
// in one of them, or in their number, with each half: the first half of all before
// the second, so that a single row is reached soon and what can be answered is. A
// half of what has ended the process is sent alone, so that it ends no others'
// calls; a half of what has run out of time has half of that time, and a row is blamed
// for that only where nothing else was asked of the stage meanwhile: another row may
// have held up its process. (What asks other machines waits for them, not for that.)
func (i *isolation) apart(ctx context.Context, at []int) []error {
	if !i.answered && i.hung == maxHung {
		return same(fmt.Errorf("%w; no other row of its batch was answered, so the stage is the cause", i.last), len(at))
	}
	calling := ctx
	if len(at) == 1 {
		calling = wire.Blamed(ctx)
	}
	err := i.call(calling, at)
	var rows sdk.RowErrors
	if err == nil || errors.As(err, &rows) {
		i.answered = true
		errs := make([]error, len(at))
		for n := range errs {
			errs[n] = rows[n]
		}
		return errs
	}
	halves, late := ctx, new(lateError)
	switch code := sdk.CodeOf(err); {
	case ctx.Err() != nil:
		return same(err, len(at))
	case errors.Is(err, sdk.ErrCrashed):
		halves = wire.Alone(ctx)
	case errors.As(err, &late) && late.unsent && i.waited < maxWaits:
		i.waited++
		return i.apart(ctx, at)
	case errors.As(err, &late) && len(at) == 1 && !late.network && !wire.IsAlone(ctx):
		return i.apart(wire.Alone(ctx), at)
	case TimedOut(err):
		if halves = withPart(ctx, partOf(ctx)/2); len(at) == 1 {
			i.hung, i.last = i.hung+1, err
		}
	case code != sdk.CodeInternal && code != sdk.CodeInvalid && code != sdk.CodeRefused:
		return same(err, len(at))
	}
	if len(at) == 1 {
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
	// Call works on some rows of the batch. It returns sdk.RowErrors, by position
	// among these rows, where single ones failed.
	Call func(ctx context.Context, rows []int) error
	// Ended is closed when nothing is to be begun any more; Cause says why. Both
	// may be nil.
	Ended <-chan struct{}
	Cause func() error
	// Stage is reported to Waits while rows wait for another try; both may be empty.
	Stage string
	Waits *terminal.WaitReporter
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
	t := tries{Work: w, errs: make([]error, n), failed: make([]int, n), start: time.Now()}
	at := make([]int, n) // those still to do
	for i := range at {
		at[i] = i
	}
	var first time.Time // that rows had to wait
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
		release := w.Waits.Hold(terminal.Wait{Stage: w.Stage, Calls: len(at), Why: again.why.Error(), Since: first, Next: time.Now().Add(pause), After: terminal.WaitSoon})
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

// tries counts how often rows have failed.
type tries struct {
	Work
	errs   []error // by row
	failed []int   // how often each failed
	start  time.Time
}

// another are rows to be tried again.
type another struct {
	rows []int
	wait time.Duration // that their stage asks for
	most int           // how often one of them failed, at least 1
	why  error         // of the first
}

// count notes the results of some rows, and returns those to be tried again.
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
		if coded.RetryAfter > maxWait {
			t.errs[n] = fmt.Errorf("%w; it asks to wait %s, longer than a run waits", results[i], coded.RetryAfter)
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

// end gives rows that are not tried again the cause why nothing is.
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

// pauses come on top of what a stage asks for: all that were sent away together
// get the same time to wait.
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

// A call of a stage that sets no timeout is bounded, so that one that hangs does
// not hold up everything for ever. A stage that asks other machines has longer: it
// waits for its limit within the call, and has a timeout of its own for each
// request.
const (
	defaultTimeout = 10 * time.Minute
	networkTimeout = time.Hour
)

// leastTime is what a part of a batch has at least, unless the stage's timeout is
// shorter: a call takes some time however few its rows are.
const leastTime = 5 * time.Second

var errNoAnswer = errors.New("no answer")

// lateError is that of a call that took too long.
type lateError struct {
	error
	network bool // of a stage that asks other machines: those may be the cause
	unsent  bool // it waited for a process that other rows held up
}

func (e *lateError) Unwrap() error { return e.error }

// TimedOut reports whether err says that a call took longer than Bounded allows.
func TimedOut(err error) bool { return errors.Is(err, errNoAnswer) }

type partKey struct{}

// withPart returns a context in which Bounded allows a part of the timeout.
func withPart(ctx context.Context, part float64) context.Context {
	return context.WithValue(ctx, partKey{}, part)
}

func partOf(ctx context.Context) float64 {
	if part, ok := ctx.Value(partKey{}).(float64); ok {
		return part
	}
	return 1
}

// Bounded makes one call of a stage within the stage's timeout, of which a part of
// a batch has as large a part. That it took longer is an error of sdk.CodeDeadline
// and TimedOut.
func Bounded(ctx context.Context, s *pipeline.Stage, call func(context.Context) error) error {
	timeout := s.Timeout
	switch {
	case timeout > 0:
	case s.Info.Network:
		timeout = networkTimeout
	default:
		timeout = defaultTimeout
	}
	limit := timeout
	if part := partOf(ctx); part < 1 {
		limit = max(time.Duration(float64(timeout)*part), min(timeout, leastTime))
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	within, turn := wire.WithTurn(within)
	err := call(within)
	// The stage has the same deadline, and may say that it has passed before within does.
	if at, _ := within.Deadline(); err != nil && ctx.Err() == nil && !time.Now().Before(at) {
		why := fmt.Errorf("%w within %s; timeout = \"...\" sets another limit", errNoAnswer, limit)
		if limit < timeout {
			why = fmt.Errorf("%w within %s, its part of the %s of its batch; timeout = \"...\" sets another limit", errNoAnswer, limit, timeout)
		}
		err = &sdk.Error{Code: sdk.CodeDeadline, Err: &lateError{why, s.Info.Network, turn.Waits()}}
	}
	return err
}
