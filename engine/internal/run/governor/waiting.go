package governor

import (
	"fmt"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/progress"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/sdk"
)

// Waits reports what the calls of each stage wait for. It is a progress.WaitSource.
func (c *Governor) Waits(now time.Time, say func(progress.Wait)) {
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
			if pause, ok := g.room(now, w); !ok && pause > 0 {
				since := g.admitted
				if w.queuedAt.After(since) {
					since = w.queuedAt
				}
				say(progress.Wait{Stage: name, Calls: calls, Why: g.allows(), Since: since, Next: now.Add(pause), After: progress.WaitSoon})
			} else if !c.budget.fits(w.estimate) {
				say(progress.Wait{Stage: name, Calls: calls, Why: "the budget has no room until calls under way have ended", Since: w.queuedAt, After: progress.WaitLate})
			}
		}
		if w := c.oldest(s); w != nil {
			why := fmt.Sprintf("no reply from %s for %s", w.breaker.name, now.Sub(w.began).Round(time.Second))
			say(progress.Wait{Stage: name, Calls: s.InFlight, Why: why, Since: w.began, After: progress.WaitLate})
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
	if n := l.requests.perMinute(); n > 0 {
		rates = append(rates, terminal.Plural(n, "request"))
	}
	if n := l.tokens.perMinute(); n > 0 {
		rates = append(rates, terminal.Plural(n, "token"))
	}
	return fmt.Sprintf("limit %q lets %s through in a minute", l.block, strings.Join(rates, " and "))
}

// keeps reports whether the endpoint makes calls wait; calls is the number of calls in the queue. A
// call that has just failed may wait in its stage instead. If the pause is longer than any call
// waits, no call waits.
func (b *breaker) keeps(now time.Time, calls int) bool {
	switch pause := b.paused.Sub(now); {
	case b.held.IsZero() || pause > maxWait:
		return false
	case pause > 0:
		return true
	}
	return calls > 0 && b.open || now.Sub(b.trouble) < progress.WaitSoon
}

// wait describes why the endpoint delays a stage's calls, both waiting and in flight.
func (b *breaker) wait(stage string, now time.Time, calls, underWay int) progress.Wait {
	w := progress.Wait{Stage: stage, Calls: calls, Why: b.why, Since: b.held, Next: b.paused, After: progress.WaitSoon}
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
