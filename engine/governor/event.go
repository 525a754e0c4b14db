package governor

import (
	"time"

	"github.com/racflow/racflow/sdk"
)

// Event is what a Governor learnt of an endpoint that the others have to know at once.
type Event struct {
	Endpoint string        `json:"endpoint"`
	Status   sdk.Status    `json:"status,omitempty"` // how a call ended; 0: one is tried
	Age      time.Duration `json:"age,omitempty"`    // how long ago that call began
	// Pause is for how long no calls are wanted: of StatusBusy, and of StatusDown.
	Pause    time.Duration `json:"pause,omitempty"`
	Down     time.Duration `json:"down,omitempty"` // of StatusDown: for how long it has been failing
	Open     bool          `json:"open,omitempty"` // its circuit is, for CoolDown, of which Pause is left
	CoolDown time.Duration `json:"cool_down,omitempty"`
	Trial    bool          `json:"trial,omitempty"`  // the call was the trial call
	Trying   bool          `json:"trying,omitempty"` // the trial call begins
	Reason   string        `json:"reason,omitempty"` // for people
}

// How long is waited for the trial call of an endpoint.
const (
	askFor = 15 * time.Second // for permission to make it
	tryFor = time.Minute      // for word of one that another Governor makes
)

// sayEvery is how often the others hear that an endpoint goes on failing.
const sayEvery = 200 * time.Millisecond

// Learnt gets what the others have to Hear. It is nil before Together. An event is
// lost where too many are left there.
func (c *Governor) Learnt() <-chan Event {
	if c.together == nil {
		return nil
	}
	return c.together.events
}

func (c *Governor) say(e Event) {
	if c.together == nil {
		return
	}
	select {
	case c.together.events <- e:
	default: // each finds out for itself
	}
}

// learn says what a call that ended changed, with the breaker as it was before it.
func (c *Governor) learn(now time.Time, w *waiter, before *breaker, o sdk.Result) {
	b := w.breaker
	e := Event{Endpoint: b.name, Status: o.Status, Age: now.Sub(w.began), Trial: w.trial, Reason: o.Reason}
	switch o.Status {
	case sdk.StatusOK, sdk.StatusRefused, sdk.StatusDenied:
		if !w.trial && !before.open && before.downs == 0 && before.busy.IsZero() && before.refusals == 0 {
			return // they have nothing to forget
		}
		e.Reason = ""
	case sdk.StatusBusy:
		if !w.trial && !before.open && !b.paused.After(before.paused) {
			return
		}
		e.Pause = max(b.paused.Sub(now), time.Millisecond)
	case sdk.StatusDown:
		if !w.trial && b.open == before.open && b.paused.Equal(before.paused) && b.downs > downInARow && now.Sub(b.said) < sayEvery {
			return
		}
		b.said = now
		e.Down, e.Open, e.Pause = now.Sub(b.since), b.open, max(b.paused.Sub(now), 0)
		if b.open {
			e.CoolDown, e.Pause = b.coolDown, max(b.retry.Sub(now), 0)
		}
	default:
		if !w.trial {
			return
		}
	}
	c.say(e)
}

// Hear takes over what another Governor learnt. A denied call of another stops no stage: each
// machine has its own key.
func (c *Governor) Hear(e Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.breakerOf(e.Endpoint).hear(time.Now(), e)
	c.dispatch()
}

func (b *breaker) hear(now time.Time, e Event) {
	if e.Trying {
		b.elsewhere, b.asked = now.Add(tryFor), time.Time{}
		return
	}
	if e.Trial {
		b.elsewhere, b.asked = time.Time{}, time.Time{}
	}
	if e.Status != sdk.StatusDown {
		b.end(now, now.Add(-e.Age), false, sdk.Result{Status: e.Status, RetryAfter: e.Pause, Reason: e.Reason})
		return
	}
	b.hold(now, e.Reason)
	if b.downs++; b.downs == 1 || now.Add(-e.Down).Before(b.since) {
		b.since = now.Add(-e.Down)
	}
	if until := now.Add(e.Pause); !e.Open && until.After(b.paused) {
		b.paused = until
	}
	if e.Open {
		if !b.open {
			b.warnDown()
		}
		b.open, b.coolDown = true, e.CoolDown
		if retry := now.Add(e.Pause); retry.After(b.retry) {
			b.retry = retry
		}
	}
}

// mayTry reports whether the trial call of an endpoint that is down is this Governor's to make. If
// nobody makes it, permission is wanted.
func (b *breaker) mayTry(now time.Time) bool {
	if b.elsewhere.After(now) {
		return false
	}
	if b.permitted.After(now) {
		return true
	}
	if b.asked.IsZero() {
		b.asked, b.asking = now, true
	}
	return false
}

// asks reports, once, that permission for a trial call is wanted.
func (b *breaker) asks() bool {
	asks := b.asking
	b.asking = false
	return asks
}

// beingTried reports whether a trial call is in flight, or may soon be.
func (b *breaker) beingTried(now time.Time) bool {
	return b.trying || b.elsewhere.After(now) || !b.asked.IsZero() && now.Sub(b.asked) < askFor
}
