package governor

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// When a circuit opens, and for how long.
const (
	downInARow = 5               // consecutive failures until an endpoint counts as down
	downFor    = 5 * time.Second // minimum time for these failures, because many calls fail together when a service restarts
	downPause  = time.Second     // longest pause after each failure until the endpoint counts as down
	goneInARow = 3               // consecutive failures of the whole service, when other stages can answer meanwhile

	firstCoolDown = 10 * time.Second // until an open circuit admits a trial call
	maxCoolDown   = 2 * time.Minute  // maximum cool-down; it doubles after each failed trial
)

// pauses determine how long to wait when an endpoint asks for fewer calls but names no time.
var pauses = support.Backoff{First: 500 * time.Millisecond, Max: time.Minute}

// maxWait limits how long calls wait for an endpoint that is down.
const maxWait = 2 * time.Minute

// maxAbsent limits how long calls wait for an endpoint where no server has listened since the first call. A server
// that restarts has answered before; a server that loads a model mostly listens meanwhile.
const maxAbsent = 15 * time.Second

// maxBusy is how long an endpoint may refuse all calls as too many before it counts as down: by
// then a quota per minute is free again. It also is the longest pause that calls wait for, so that an exhausted daily
// quota does not delay a run for hours.
const maxBusy = 5 * time.Minute

// breaker is the circuit breaker of an endpoint. It also applies the pauses that the endpoint asks for.
type breaker struct {
	name string
	log  *slog.Logger

	paused   time.Time // no calls before this time
	refusals int       // exponent of the next pause
	refused  time.Time // when it last asked for fewer calls
	busy     time.Time // when it first asked for fewer calls since its last answer; zero: it has not asked

	held    time.Time // when calls began to wait for it; zero: no call waits
	trouble time.Time // when it last failed or asked for fewer calls

	reports     bool      // the endpoint reports usage
	implausible bool      // an impossible usage was logged
	answered    bool      // the endpoint has answered at least once
	downs       int       // failures in a row
	since       time.Time // time of the first of these failures
	why         string    // reason of the last failure, as the stage reported it
	open        bool
	coolDown    time.Duration
	retry       time.Time // when an open circuit admits a trial call
	trying      bool      // the trial call is in flight
}

// ready reports whether a call may be sent: then both results are zero. Otherwise the call waits
// for the duration, or fails with the error.
func (b *breaker) ready(now time.Time) (time.Duration, error) {
	if b.open {
		if wait := b.retry.Sub(now); wait > 0 {
			return 0, b.unavailable(fmt.Errorf("%s is down%s: it is tried again in %s; see to the service, or give the stage a fallback", b.name, b.because(), wait.Round(time.Second)))
		}
		if b.trying {
			return 0, b.unavailable(fmt.Errorf("%s is down%s: it is being tried again; see to the service, or give the stage a fallback", b.name, b.because()))
		}
	}
	wait := max(b.paused.Sub(now), 0)
	if wait > maxBusy {
		return 0, b.unavailable(fmt.Errorf("%s wants no calls for another %s: resume the run then", b.name, wait.Round(time.Second)))
	}
	if wait > 0 && b.exhausted(now) {
		return 0, b.unavailable(fmt.Errorf("%s: it is tried again in %s", b.allBusy(now), wait.Round(time.Second)))
	}
	return wait, nil
}

// exhausted reports whether the endpoint has refused calls as too many for too long.
func (b *breaker) exhausted(now time.Time) bool {
	return !b.busy.IsZero() && now.Sub(b.busy) >= maxBusy
}

func (b *breaker) allBusy(now time.Time) string {
	return fmt.Sprintf("%s has refused all calls as too many for %s", b.name, now.Sub(b.busy).Round(time.Second))
}

// requiredWait returns how long a call of a required stage waits in a situation where calls of
// other stages fail at once. An error says why waiting has become useless.
func (b *breaker) requiredWait(now time.Time) (time.Duration, error) {
	switch {
	case !b.open && b.exhausted(now):
		return 0, errors.New(b.allBusy(now) + "; a quota may be spent, or the limit too high")
	case !b.open:
		return 0, fmt.Errorf("%s wants no calls for another %s", b.name, b.paused.Sub(now).Round(time.Second))
	case b.absent() && now.Sub(b.since) >= maxAbsent && !b.trying:
		return 0, fmt.Errorf("no server has listened at %s for %s: start it, or set base_url to another%s", b.name, now.Sub(b.since).Round(time.Second), b.because())
	case now.Sub(b.since) >= maxWait && !b.trying && !b.answered:
		return 0, fmt.Errorf("%s has never answered, in %s%s", b.name, now.Sub(b.since).Round(time.Second), b.because())
	case now.Sub(b.since) >= maxWait && !b.trying:
		return 0, fmt.Errorf("%s has been down for %s%s", b.name, now.Sub(b.since).Round(time.Second), b.because())
	}
	return max(b.retry.Sub(now), 0), nil // 0: the trial call is in flight
}

// absent reports whether the endpoint has never answered and refuses connections.
func (b *breaker) absent() bool {
	return !b.answered && strings.Contains(b.why, syscall.ECONNREFUSED.Error())
}

// loading reports whether the endpoint may still load a model: it accepts connections, but has not answered
// yet.
func (b *breaker) loading(now time.Time) bool {
	return !b.answered && !b.absent() && now.Sub(b.since) < maxAbsent
}

// because returns the reason of the last failure in parentheses; empty: none is known.
func (b *breaker) because() string {
	if b.why == "" {
		return ""
	}
	return " (" + b.why + ")"
}

func (b *breaker) unavailable(err error) error {
	return &sdk.Error{Code: sdk.CodeUnavailable, Err: err}
}

// begin records an admitted call, and reports whether it is a trial call.
func (b *breaker) begin() (trial bool) {
	b.trying = b.open
	return b.open
}

// end records the result of a call; began is the time at which it was sent.
func (b *breaker) end(now, began time.Time, trial bool, o sdk.Result) {
	if trial {
		b.trying = false
	}
	switch o.Status {
	case sdk.StatusOK:
		b.answered, b.downs, b.busy = true, 0, time.Time{}
		b.relieve(now)
		if began.After(b.refused) {
			b.refusals = max(b.refusals-1, 0)
		}
		b.close()
	case sdk.StatusRefused, sdk.StatusDenied:
		b.answered, b.downs = true, 0
		b.relieve(now)
		b.close()
	case sdk.StatusBusy:
		b.answered, b.downs = true, 0
		b.hold(now, o.Reason)
		b.close()
		b.refuse(now, began, o.RetryAfter)
	case sdk.StatusDown:
		b.hold(now, o.Reason)
		b.down(now, began, trial, o.RetryAfter > 0)
	}
}

// refuse starts a pause. If the endpoint refuses several calls that were in flight together, only
// the first refusal lengthens the pause.
func (b *breaker) refuse(now, began time.Time, after time.Duration) {
	if b.busy.IsZero() || now.Sub(b.refused) > maxBusy { // no call was sent meanwhile
		b.busy = now
	}
	if began.After(b.refused) {
		b.refusals++
		b.refused = now
		if after <= 0 {
			after = pauses.Delay(b.refusals)
		}
	}
	if until := now.Add(after); until.After(b.paused) {
		b.paused = until
		b.log.Debug("a service asks for fewer calls", "endpoint", b.name, "pause", after)
	}
}

// down records a failure. gone means that the service as a whole does not answer, and that no call
// waits for it.
func (b *breaker) down(now, began time.Time, trial, gone bool) {
	if b.downs++; b.downs == 1 {
		b.since = now
	}
	switch {
	case trial:
		b.coolDown = min(2*b.coolDown, maxCoolDown)
	case !b.open && b.downs >= goneInARow && gone && b.loading(now): // all calls wait: an open circuit would only cost answers
		b.paused = now.Add(downPause)
		return
	case !b.open && b.downs >= downInARow && now.Sub(b.since) >= downFor:
		b.open, b.coolDown = true, firstCoolDown
		b.warnDown()
	case !b.open && b.downs >= goneInARow && gone:
		b.open, b.coolDown = true, downPause
		b.warnDown()
	case !b.open && b.downs >= downInARow && !began.Before(b.paused):
		// The service may only be restarting; without a pause many items would use up their retries.
		b.paused = now.Add(support.Backoff{First: downPause, Max: downPause}.Delay(1))
		return
	default:
		return // the call was sent before the circuit opened or the pause began, so it adds no news
	}
	b.retry = now.Add(b.coolDown)
	patience := maxWait
	if b.absent() {
		patience = maxAbsent
	}
	if end := b.since.Add(patience); now.Before(end) && end.Before(b.retry) {
		b.retry = end // allow one more trial before the waiting calls give up
	}
}

func (b *breaker) warnDown() {
	b.log.Warn("a service is down: until it is back, calls that something can take over fail and others wait", "endpoint", b.name, "failed_in_a_row", b.downs, "error", b.why)
}

func (b *breaker) close() {
	if b.open {
		b.open = false
		b.log.Warn("a service is back", "endpoint", b.name)
	}
}
