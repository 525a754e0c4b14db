package governor

import (
	"fmt"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/show/terminal"
	"github.com/racflow/racflow/sdk"
)

// Event is news about an endpoint that a Governor sends to the other Governors at once.
type Event struct {
	Endpoint string        `json:"endpoint"`
	Status   sdk.Status    `json:"status,omitempty"` // how a call ended; 0: a trial call begins
	Age      time.Duration `json:"age,omitempty"`    // how long ago that call began
	// Pause is how long to send no calls; for StatusBusy and StatusDown.
	Pause    time.Duration `json:"pause,omitempty"`
	Down     time.Duration `json:"down,omitempty"` // StatusDown: how long the endpoint has been failing
	Open     bool          `json:"open,omitempty"` // the circuit is open for CoolDown; Pause is the rest of it
	CoolDown time.Duration `json:"cool_down,omitempty"`
	Trial    bool          `json:"trial,omitempty"`  // the call was the trial call
	Trying   bool          `json:"trying,omitempty"` // the trial call begins
	Reason   string        `json:"reason,omitempty"` // for people
}

// How long to wait for the trial call of an endpoint.
const (
	askFor = 15 * time.Second // for the permission to make it
	tryFor = time.Minute      // for the result of another Governor's trial call
)

// sayEvery is how often the other Governors hear that an endpoint still fails.
const sayEvery = 200 * time.Millisecond

// Learnt delivers the events that the other Governors have to Hear. It is nil before Together. If
// too many events wait in it, new ones are dropped.
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
	default: // the other Governors find out by themselves
	}
}

// learn sends the news of a call that has ended; before is the breaker before that end.
func (c *Governor) learn(now time.Time, w *waiter, before *breaker, o sdk.Result) {
	b := w.breaker
	e := Event{Endpoint: b.name, Status: o.Status, Age: now.Sub(w.began), Trial: w.trial, Reason: o.Reason}
	switch o.Status {
	case sdk.StatusOK, sdk.StatusRefused, sdk.StatusDenied:
		if !w.trial && !before.open && before.downs == 0 && before.busy.IsZero() && before.refusals == 0 {
			return // the other Governors have nothing to reset
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

// Hear applies an event of another Governor. A denied call there stops no stage here, because each
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

// mayTry reports whether this Governor may send the trial call of an endpoint that is down. If no
// Governor sends it, mayTry asks for permission.
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

// asks reports, once, that this Governor wants permission for a trial call.
func (b *breaker) asks() bool {
	asks := b.asking
	b.asking = false
	return asks
}

// beingTried reports whether a trial call is in flight, or may soon be.
func (b *breaker) beingTried(now time.Time) bool {
	return b.trying || b.elsewhere.After(now) || !b.asked.IsZero() && now.Sub(b.asked) < askFor
}

// Waits reports what the calls of each stage wait for. It is a terminal.WaitSource.
func (c *Governor) Waits(now time.Time, say func(terminal.Wait)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.spent != nil || c.ctx.Err() != nil {
		return
	}
	for name, s := range c.stages {
		if s.stopped != nil {
			continue
		}
		calls, w, g := c.queued(s)
		b := s.trouble
		if w != nil && !w.breaker.held.IsZero() {
			b = w.breaker
		}
		switch {
		case b != nil && b.keeps(now, calls+s.InFlight):
			say(b.wait(name, now, calls, s.InFlight))
		case w != nil:
			if why := c.lacks(g, w, now); why != "" {
				say(terminal.Wait{Stage: name, Calls: calls, Why: why, Since: w.queuedAt, After: terminal.WaitLate})
			} else if pause, ok := g.room(now, w); !ok && pause > 0 {
				since := g.admitted
				if w.queuedAt.After(since) {
					since = w.queuedAt
				}
				say(terminal.Wait{Stage: name, Calls: calls, Why: g.allows(), Since: since, Next: now.Add(pause), After: terminal.WaitSoon})
			} else if c.together == nil && !c.budget.fits(w.estimate) {
				say(terminal.Wait{Stage: name, Calls: calls, Why: "the budget has no room until calls under way have ended", Since: w.queuedAt, After: terminal.WaitLate})
			}
		}
		if w := c.oldest(s); w != nil {
			why := fmt.Sprintf("no reply from %s for %s", w.breaker.name, now.Sub(w.began).Round(time.Second))
			say(terminal.Wait{Stage: name, Calls: s.InFlight, Why: why, Since: w.began, After: terminal.WaitLate})
		}
	}
}

// queued returns how many calls of a stage wait, and the first of them with its limiter.
func (c *Governor) queued(s *stage) (calls int, first *waiter, of *limiter) {
	for _, g := range c.limiters {
		for _, q := range g.queues {
			if q.stage == s && q.first() != nil {
				calls += len(q.waiting)
				if first == nil {
					first, of = q.first(), g
				}
			}
		}
	}
	return calls, first, of
}

// oldest returns the call of a stage that has been under way for longest; nil: there is none.
func (c *Governor) oldest(s *stage) (oldest *waiter) {
	for w := range c.flying {
		if w.host.stage == s && !w.call.Batch && (oldest == nil || w.began.Before(oldest.began)) {
			oldest = w
		}
	}
	return oldest
}

// allows describes the limiter's limits in words.
func (l *limiter) allows() string {
	var rates []string
	if n := l.perMinute(false); n > 0 {
		rates = append(rates, terminal.Plural(n, "request"))
	}
	if n := l.perMinute(true); n > 0 {
		rates = append(rates, terminal.Plural(n, "token"))
	}
	return fmt.Sprintf("limit %q lets %s through in a minute", l.block, strings.Join(rates, " and "))
}

// keeps reports whether the endpoint makes calls wait; calls is how many wait here. A call that has
// just failed may wait in its stage instead. If the pause is longer than any call waits, none
// waits.
func (b *breaker) keeps(now time.Time, calls int) bool {
	switch pause := b.paused.Sub(now); {
	case b.held.IsZero() || pause > maxWait:
		return false
	case pause > 0:
		return true
	}
	return calls > 0 && b.open || now.Sub(b.trouble) < terminal.WaitSoon
}

// wait describes why the endpoint delays a stage's waiting calls and those under way.
func (b *breaker) wait(stage string, now time.Time, calls, underWay int) terminal.Wait {
	w := terminal.Wait{Stage: stage, Calls: calls, Why: b.why, Since: b.held, Next: b.paused, After: terminal.WaitSoon}
	if b.open {
		w.Next = b.retry
	}
	switch {
	case w.Why == "":
		w.Why = b.name
	case !strings.Contains(w.Why, b.name):
		w.Why += " (" + b.name + ")"
	}
	if !w.Next.After(now) {
		w.Next, w.Calls = time.Time{}, calls+underWay
		w.Why += ", it is being tried again"
	}
	return w
}

// hold records that the endpoint makes calls wait, and why.
func (b *breaker) hold(now time.Time, why string) {
	if b.held.IsZero() || now.Sub(b.trouble) > longTrouble && !b.open {
		b.held = now
	}
	b.trouble, b.why = now, why
}

// longTrouble is the time without a call after which a failure starts a new wait.
const longTrouble = 30 * time.Second

// relieve records that the endpoint has answered a call.
func (b *breaker) relieve(now time.Time) {
	if !b.paused.After(now) {
		b.held = time.Time{}
	}
}

// reportImplausible logs once that the endpoint reports an impossible usage.
func (b *breaker) reportImplausible(o sdk.Result) {
	if b.implausible {
		return
	}
	b.implausible = true
	numbers := []any{"endpoint", b.name, "input_tokens", o.Usage.InputTokens, "cached_tokens", o.Usage.CachedTokens, "output_tokens", o.Usage.OutputTokens}
	if o.Reason != "" {
		numbers = []any{"endpoint", b.name, "usage", o.Reason}
	}
	b.log.Warn("a service reports a usage that cannot be: such calls count as estimated", numbers...)
}
