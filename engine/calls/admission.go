package calls

import (
	"cmp"
	"time"

	"github.com/racflow/racflow/sdk"
)

// waiter is a call that waits to be admitted or is under way.
type waiter struct {
	host     *host
	gate     *gate
	endpoint *endpoint
	call     sdk.Call
	estimate estimate
	verdict  chan error // gets one value when the call is admitted or refused
	queued   bool

	began           time.Time
	request, tokens *use
	probe           bool
}

// enter puts a call into its queue. The caller holds mu.
func (c *Control) enter(h *host, call sdk.Call) *waiter {
	e := c.endpoints[call.Endpoint]
	if e == nil {
		e = &endpoint{name: call.Endpoint, log: c.options.Log}
		c.endpoints[call.Endpoint] = e
	}
	w := &waiter{
		host: h, gate: c.gateOf(h, call.Endpoint), endpoint: e, call: call,
		estimate: estimateOf(call, h.price), verdict: make(chan error, 1), queued: true,
	}
	if c.budget.limited() && !bounded(call) && !h.stage.unbounded {
		h.stage.unbounded = true
		c.options.Log.Warn("nobody knows what a call takes at most: the run may go over its budget by what the calls under way take", "stage", h.name)
	}
	w.gate.queue(h.stage).add(w)
	c.pump()
	return w
}

// leave takes a call back that its caller no longer wants.
func (c *Control) leave(w *waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case w.queued:
		w.gate.queue(w.host.stage).remove(w)
		c.pump() // it may have held up others
	case <-w.verdict == nil:
		w.gate.requests.correct(w.request, 0) // it was not sent
		w.gate.tokens.correct(w.tokens, 0)
		c.release(w)
		w.endpoint.end(time.Now(), w.began, w.probe, sdk.Result{Status: sdk.StatusLeft})
		c.pump()
	}
}

// pump admits all calls that may be sent now, and sees to it that it is called
// again when the next one may. The caller holds mu.
func (c *Control) pump() {
	now := time.Now()
	var next time.Duration
	for _, g := range c.gates {
		for {
			wait, again := c.step(g, now)
			if wait > 0 && (next == 0 || wait < next) {
				next = wait
			}
			if !again {
				break
			}
		}
	}
	if wait := c.report(now); wait > 0 && (next == 0 || wait < next) {
		next = wait
	}
	if c.wake != nil {
		c.wake.Stop()
		c.wake = nil
	}
	if next > 0 {
		c.wake = time.AfterFunc(next, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.pump()
		})
	}
}

// step admits or refuses one call of a gate. Where it can do neither, it
// returns false, and the time after which it may be able to; 0: when a call has
// ended.
func (c *Control) step(g *gate, now time.Time) (wait time.Duration, again bool) {
	for i := range g.queues {
		at := (g.turn + i) % len(g.queues)
		w := g.queues[at].first()
		if w == nil {
			continue
		}
		if err := cmp.Or(w.host.stage.stopped, c.spent, c.ctx.Err()); err != nil {
			g.refuse(at, err)
			return 0, true
		}
		pause, err := w.endpoint.ready(now)
		waits := pause > 0
		if err != nil && w.host.sole {
			waits = true
			if pause, err = w.endpoint.patience(now); err != nil {
				c.stop(w.host, err)
				return 0, true
			}
		}
		if err != nil {
			g.refuse(at, err)
			return 0, true
		}
		if waits { // another stage's endpoint may be ready
			if pause > 0 && (wait == 0 || pause < wait) {
				wait = pause
			}
			continue
		}
		switch {
		case !c.budget.fits(w.estimate) && c.underWay > 0:
			return 0, false
		case !c.budget.fits(w.estimate):
			c.spent = c.budget.spent(w.estimate)
			c.refuse(c.spent, func(*stage) bool { return true })
			return 0, true
		}
		if pause, ok := g.room(now, w); !ok {
			return pause, false
		}
		c.admit(g, at, now)
		return 0, true
	}
	return wait, false
}

func (c *Control) admit(g *gate, at int, now time.Time) {
	w := g.pop(at)
	w.began = now
	w.request = g.requests.take(now, 1)
	w.tokens = g.tokens.take(now, float64(w.call.Tokens))
	w.probe = w.endpoint.begin()
	c.budget.reserve(w.estimate)
	c.underWay++
	g.underWay++
	w.host.stage.UnderWay++
	w.verdict <- nil
}

// release takes a call out of those that are under way.
func (c *Control) release(w *waiter) {
	c.underWay--
	w.gate.underWay--
	w.host.stage.UnderWay--
	c.budget.release(w.estimate)
	if c.underWay == 0 {
		c.budget.reserved = estimate{} // what adding and subtracting has left
	}
}
