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

// maxHung is how many rows may hang, each alone, before the rest of their batch is given up. It
// applies while no call with rows of the batch was answered: then the stage hangs, not a row.
const maxHung = 4

// maxWaits is how often rows of a batch may wait in vain for a process that other rows hold up.
// Each time they do so for a limited time.
const maxWaits = 10

// isolation finds the rows that fail a batch.
type isolation struct {
	call     func(context.Context, []int) error
	answered bool  // some call was answered
	hung     int   // rows that hung alone
	waited   int   // waits for other rows
	last     error // error of the last row that hung
}

// apart calls with rows. If the call fails as a whole for a reason that may lie in one of them, or
// in their number, apart calls with each half: the first half completely before the second, to
// reach a single row soon and answer what can be answered. After a crash of the process, a half is
// sent alone, so that it ends no other calls. After a timeout, a half gets half of the time. A
// single row is blamed for a timeout only if nothing else ran in the stage meanwhile: another row
// may have held up its process. (A stage that asks other machines waits for them, not for its
// process.)
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
	// Call works on some rows of the batch. It returns sdk.RowErrors, by position among these rows,
	// if single rows failed.
	Call func(ctx context.Context, rows []int) error
	// Ended is closed when no call may begin any more; Cause says why. Both may be nil.
	Ended <-chan struct{}
	Cause func() error
	// Stage is reported to Waits while rows wait for another try; both may be empty.
	Stage string
	Waits *terminal.WaitReporter
	// Again is called before failed rows are tried again; may be nil.
	Again func()
}

// maxWait is the longest pause that a stage may ask for. Rows that would have to wait longer fail
// with that error. Within this time it may ask again and again: a row that has to wait its turn has
// not failed.
const maxWait = 2 * time.Minute

// Do works on rows 0 to n-1, and again on rows whose failure may pass. It returns an error or nil
// for each.
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

// Timeouts of a call if its stage sets none, so that a hanging call does not hold up everything for
// ever. A stage that asks other machines gets longer: it waits for its rate limit within the call,
// and has a timeout of its own for each request.
const (
	defaultTimeout = 10 * time.Minute
	networkTimeout = time.Hour
)

// leastTime is the least timeout of a part of a batch, unless the stage's timeout is shorter: a
// call takes some time however few its rows are.
const leastTime = 5 * time.Second

var errNoAnswer = errors.New("no answer")

// lateError is the error of a call that took too long.
type lateError struct {
	error
	network bool // the stage asks other machines, which may be the cause
	unsent  bool // the call waited for a process that other rows held up
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

// Bounded makes one call of a stage within its timeout; a part of a batch gets the same part of it.
// A timeout is an error with sdk.CodeDeadline, and TimedOut reports it.
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
	// The stage has the same deadline, and may report it before within does.
	if at, _ := within.Deadline(); err != nil && ctx.Err() == nil && !time.Now().Before(at) {
		why := fmt.Errorf("%w within %s; timeout = \"...\" sets another limit", errNoAnswer, limit)
		if limit < timeout {
			why = fmt.Errorf("%w within %s, its part of the %s of its batch; timeout = \"...\" sets another limit", errNoAnswer, limit, timeout)
		}
		err = &sdk.Error{Code: sdk.CodeDeadline, Err: &lateError{why, s.Info.Network, turn.Waits()}}
	}
	return err
}
