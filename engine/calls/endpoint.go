package calls

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/backoff"
)

// When a circuit opens, and for how long.
const (
	downInARow = 5               // calls that failed, one after the other, until an endpoint counts as down,
	downFor    = 5 * time.Second // and how long none has been answered: many calls fail together when a service is only restarted
	downPause  = time.Second     // the longest delay of calls meanwhile, each time that some have failed

	firstCoolDown = 10 * time.Second // until an open circuit lets a call through
	maxCoolDown   = 2 * time.Minute  // it doubles up to this
)

// pauses are for an endpoint that wants fewer calls and does not say for how long.
var pauses = backoff.Backoff{First: 500 * time.Millisecond, Max: time.Minute}

// maxPatience is the longest time for which calls wait for an endpoint that is
// down, or that wants to be left alone. A quota that is spent for the day is no
// reason to stand still for hours.
const maxPatience = 2 * time.Minute

// maxBusy is how long an endpoint may refuse all calls as too many before it is as
// good as down: what is counted by the minute is over by then.
const maxBusy = 5 * time.Minute

// endpoint is what is known of a service.
type endpoint struct {
	name string
	log  *slog.Logger

	paused   time.Time // until then it wants no calls
	refusals int       // the exponent of the next pause
	refused  time.Time // when it last asked for fewer calls
	busy     time.Time // when it first did since it served one; zero: it does not

	held     time.Time // since when it has kept calls waiting; zero: it does not
	trouble  time.Time // when it last failed or asked for fewer calls
	reported time.Time // when it was last reported that calls wait for it

	reports  bool      // it tells what calls took
	odd      bool      // it was reported that it tells what cannot be
	answered bool      // ever
	downs    int       // in a row
	since    time.Time // the first of them
	why      string    // the last of them, as the stage says
	open     bool
	coolDown time.Duration
	retry    time.Time // when an open circuit lets a call through
	probing  bool      // that call is under way
}

// ready says whether a call may go to the endpoint: it may when both results
// are zero. Else it has to wait, or fails.
func (e *endpoint) ready(now time.Time) (time.Duration, error) {
	if e.open {
		if wait := e.retry.Sub(now); wait > 0 {
			return 0, e.unavailable(fmt.Errorf("%s is down%s: it is tried again in %s; see to the service, or give the stage a fallback", e.name, e.because(), wait.Round(time.Second)))
		}
		if e.probing {
			return 0, e.unavailable(fmt.Errorf("%s is down%s: it is being tried again; see to the service, or give the stage a fallback", e.name, e.because()))
		}
	}
	wait := max(e.paused.Sub(now), 0)
	if wait > maxPatience {
		return 0, e.unavailable(fmt.Errorf("%s wants no calls for another %s: resume with --resume then", e.name, wait.Round(time.Second)))
	}
	if wait > 0 && e.exhausted(now) {
		return 0, e.unavailable(fmt.Errorf("%s: it is tried again in %s", e.allBusy(now), wait.Round(time.Second)))
	}
	return wait, nil
}

// exhausted reports whether nothing is to be hoped for from more patience with an
// endpoint that wants fewer calls.
func (e *endpoint) exhausted(now time.Time) bool {
	return !e.busy.IsZero() && now.Sub(e.busy) >= maxBusy
}

func (e *endpoint) allBusy(now time.Time) string {
	return fmt.Sprintf("%s has refused all calls as too many for %s", e.name, now.Sub(e.busy).Round(time.Second))
}

// patience is how long a call waits that nothing takes over for, while others
// fail at once; or why that is no use any more.
func (e *endpoint) patience(now time.Time) (time.Duration, error) {
	switch {
	case !e.open && e.exhausted(now):
		return 0, errors.New(e.allBusy(now) + "; a quota may be spent, or the limit too high")
	case !e.open:
		return 0, fmt.Errorf("%s wants no calls for another %s", e.name, e.paused.Sub(now).Round(time.Second))
	case now.Sub(e.since) >= maxPatience && !e.probing && !e.answered:
		return 0, fmt.Errorf("%s has never answered, in %s%s", e.name, now.Sub(e.since).Round(time.Second), e.because())
	case now.Sub(e.since) >= maxPatience && !e.probing:
		return 0, fmt.Errorf("%s has been down for %s%s", e.name, now.Sub(e.since).Round(time.Second), e.because())
	}
	return max(e.retry.Sub(now), 0), nil // 0: a call is under way that will tell
}

// because is why the last call failed.
func (e *endpoint) because() string {
	if e.why == "" {
		return ""
	}
	return " (" + e.why + ")"
}

func (e *endpoint) unavailable(err error) error {
	return &sdk.Error{Code: sdk.CodeUnavailable, Err: err}
}

// begin is told of every call that is let through. It reports whether the call
// is to show whether the endpoint is back.
func (e *endpoint) begin() (probe bool) {
	e.probing = e.open
	return e.open
}

// end is told how a call ended that began at a time.
func (e *endpoint) end(now, began time.Time, probe bool, o sdk.Result) {
	if probe {
		e.probing = false
	}
	switch o.Status {
	case sdk.StatusOK:
		e.answered, e.downs, e.busy = true, 0, time.Time{}
		e.relieve(now)
		if began.After(e.refused) {
			e.refusals = max(e.refusals-1, 0)
		}
		e.close()
	case sdk.StatusRefused, sdk.StatusDenied:
		e.answered, e.downs = true, 0
		e.relieve(now)
		e.close()
	case sdk.StatusBusy:
		e.answered, e.downs = true, 0
		e.hold(now, o.Reason)
		e.close()
		e.refuse(now, began, o.RetryAfter)
	case sdk.StatusDown:
		e.hold(now, o.Reason)
		e.down(now, began, probe)
	}
}

// refuse leaves the endpoint alone. Of calls that were under way together, the
// first that is refused makes the pause longer, and the others do not.
func (e *endpoint) refuse(now, began time.Time, after time.Duration) {
	if e.busy.IsZero() || now.Sub(e.refused) > maxBusy { // nobody has asked meanwhile
		e.busy = now
	}
	if began.After(e.refused) {
		e.refusals++
		e.refused = now
		if after <= 0 {
			after = pauses.Delay(e.refusals)
		}
	}
	if until := now.Add(after); until.After(e.paused) {
		e.paused = until
		e.log.Debug("a service asks for fewer calls", "endpoint", e.name, "pause", after)
	}
}

func (e *endpoint) down(now, began time.Time, probe bool) {
	if e.downs++; e.downs == 1 {
		e.since = now
	}
	switch {
	case probe:
		e.coolDown = min(2*e.coolDown, maxCoolDown)
	case !e.open && e.downs >= downInARow && now.Sub(e.since) >= downFor:
		e.open, e.coolDown = true, firstCoolDown
		e.log.Warn("a service is down: calls to it fail until it is back", "endpoint", e.name, "failed_in_a_row", e.downs, "error", e.why)
	case !e.open && e.downs >= downInARow && !began.Before(e.paused):
		// It may only be restarted: to go on as before would use up the tries of
		// many items.
		e.paused = now.Add(backoff.Backoff{First: downPause, Max: downPause}.Delay(1))
		return
	default:
		return // a call from before the circuit opened, or the pause, says nothing new
	}
	e.retry = now.Add(e.coolDown)
	if end := e.since.Add(maxPatience); now.Before(end) && end.Before(e.retry) {
		e.retry = end // once more before those that wait give up
	}
}

func (e *endpoint) close() {
	if e.open {
		e.open = false
		e.log.Warn("a service is back", "endpoint", e.name)
	}
}
