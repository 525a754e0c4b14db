package calls

import (
	"fmt"
	"time"

	"github.com/racflow/racflow/sdk"
)

// When it is reported that calls wait for a service.
const (
	reportAfter = 5 * time.Second
	reportEvery = 30 * time.Second
)

// Wait is what calls wait for.
type Wait struct {
	Endpoint string        // the service's address
	Reason   string        // in the words of the service or the system; empty: it gave none
	For      time.Duration // that it has kept calls waiting
	Again    time.Duration // until a call is let through; 0: one is under way, or about to be
}

// String is the wait in words.
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

// report reports the endpoints that have kept calls waiting for too long. It
// returns when the next report is due; 0: none is. The caller holds mu.
func (c *Control) report(now time.Time) (next time.Duration) {
	if c.options.Waiting == nil || c.spent != nil || c.ctx.Err() != nil {
		return 0
	}
	for _, e := range c.endpoints {
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

// waited reports whether calls wait for an endpoint: those that were refused as too
// many do so at their stage, others in their queue.
func (c *Control) waited(e *endpoint, now time.Time) bool {
	if pause := e.paused.Sub(now); pause > 0 && pause <= maxPatience {
		return true
	}
	if !e.open && now.Sub(e.trouble) >= reportAfter {
		return false // they wait for something else
	}
	for _, g := range c.gates {
		for _, q := range g.queues {
			for _, w := range q.waiting {
				if w.endpoint == e {
					return true
				}
			}
		}
	}
	return false
}

// hold notes that the endpoint keeps calls waiting, and why.
func (e *endpoint) hold(now time.Time, why string) {
	if e.held.IsZero() || now.Sub(e.trouble) > reportEvery && !e.open {
		e.held = now
	}
	e.trouble, e.why = now, why
}

// relieve notes that a call got through.
func (e *endpoint) relieve(now time.Time) {
	if !e.paused.After(now) {
		e.held = time.Time{}
	}
}

// disbelieve reports, once, that the endpoint says of a call what cannot be.
func (e *endpoint) disbelieve(u sdk.Usage) {
	if !e.odd {
		e.odd = true
		e.log.Warn("a service reports more tokens than a call can take: such calls count as estimated",
			"endpoint", e.name, "input_tokens", u.InputTokens, "cached_tokens", u.CachedTokens, "output_tokens", u.OutputTokens)
	}
}
