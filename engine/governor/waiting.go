package governor

import (
	"fmt"
	"time"

	"github.com/racflow/racflow/sdk"
)

// When waiting for a service is reported.
const (
	reportAfter = 5 * time.Second
	reportEvery = 30 * time.Second
)

// Wait describes a service that calls wait for.
type Wait struct {
	Endpoint string        // the service's address
	Reason   string        // as the service or the system put it; may be empty
	For      time.Duration // how long calls have waited
	Again    time.Duration // until the next trial call; 0: one is in flight, or about to be
}

// String describes the wait.
func (w Wait) String() string {
	text := "waiting for " + w.Endpoint
	if w.Reason != "" {
		text += " (" + w.Reason + ")"
	}
	if again := w.Again.Round(time.Second); again > 0 {
		return fmt.Sprintf("%s: tried again in %d s", text, again/time.Second)
	}
	return text + ": it is being tried again"
}

// report reports the endpoints that have kept calls waiting for too long, and returns the
// time until the next report; 0: none is due. The caller holds mu.
func (c *Governor) report(now time.Time) (next time.Duration) {
	if c.options.Waiting == nil || c.spent != nil || c.ctx.Err() != nil {
		return 0
	}
	for _, e := range c.breakers {
		due := e.held.Add(reportAfter)
		if again := e.reported.Add(reportEvery); again.After(due) {
			due = again
		}
		if e.held.IsZero() || !c.waited(e, now) {
			continue
		}
		wait := due.Sub(now)
		if wait <= 0 {
			e.reported, wait = now, reportEvery
			again := max(e.paused.Sub(now), 0)
			if e.open {
				again = max(e.retry.Sub(now), 0)
			}
			c.options.Waiting(Wait{Endpoint: e.name, Reason: e.why, For: now.Sub(e.held), Again: again})
		}
		if next == 0 || wait < next {
			next = wait
		}
	}
	return next
}

// waited reports whether calls wait for an endpoint: in its queue or, after a refusal as
// too many, in their stage.
func (c *Governor) waited(e *breaker, now time.Time) bool {
	if pause := e.paused.Sub(now); pause > 0 && pause <= maxWait {
		return true
	}
	if !e.open && now.Sub(e.trouble) >= reportAfter {
		return false // they wait for something else
	}
	for _, g := range c.limiters {
		for _, q := range g.queues {
			for _, w := range q.waiting {
				if w.breaker == e {
					return true
				}
			}
		}
	}
	return false
}

// hold records that the endpoint keeps calls waiting, and why.
func (b *breaker) hold(now time.Time, why string) {
	if b.held.IsZero() || now.Sub(b.trouble) > reportEvery && !b.open {
		b.held = now
	}
	b.trouble, b.why = now, why
}

// relieve records that a call was answered.
func (b *breaker) relieve(now time.Time) {
	if !b.paused.After(now) {
		b.held = time.Time{}
	}
}

// reportImplausible reports once that the endpoint claims an impossible usage.
func (b *breaker) reportImplausible(u sdk.Usage) {
	if !b.implausible {
		b.implausible = true
		b.log.Warn("a service reports more tokens than a call can take: such calls count as estimated",
			"endpoint", b.name, "input_tokens", u.InputTokens, "cached_tokens", u.CachedTokens, "output_tokens", u.OutputTokens)
	}
}
