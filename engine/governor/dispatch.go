package governor

import (
	"cmp"
	"fmt"
	"time"

	"github.com/racflow/racflow/sdk"
)

// waiter is a call that waits to be admitted or is in flight.
type waiter struct {
	host     *host
	limiter  *limiter
	breaker  *breaker
	call     sdk.Call
	estimate estimate
	verdict  chan error // gets one value: nil when the call is admitted, else why it is refused
	queued   bool
	queuedAt time.Time

	began           time.Time
	request, tokens *use
	use             *tally // where the limit is held together with others
	trial           bool
}

// enqueue puts a call into its queue. The caller holds mu.
func (c *Governor) enqueue(h *host, call sdk.Call) *waiter {
	w := &waiter{
		host: h, limiter: c.limiterOf(h, call.Endpoint), breaker: c.breakerOf(call.Endpoint), call: call,
		estimate: estimateOf(call, h.priceOf(call)), verdict: make(chan error, 1), queued: true, queuedAt: time.Now(),
	}
	if c.together != nil {
		w.estimate = c.budget.least(w.estimate)
	}
	if c.budget.limited() && !bounded(call) && !h.stage.unbounded {
		h.stage.unbounded = true
		c.options.Log.Warn("no call says what it takes at most: the run may exceed its budget by what the calls in flight take", "stage", h.name)
	}
	w.limiter.queue(h.stage).add(w)
	w.limiter.crowd()
	c.dispatch()
	return w
}

func (c *Governor) breakerOf(endpoint string) *breaker {
	b := c.breakers[endpoint]
	if b == nil {
		b = &breaker{name: endpoint, log: c.options.Log, shared: c.together != nil}
		c.breakers[endpoint] = b
	}
	return b
}

// withdraw takes back a call that its caller no longer wants.
func (c *Governor) withdraw(w *waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case w.queued:
		w.limiter.queue(w.host.stage).remove(w)
		c.dispatch() // others may have waited behind it
	case <-w.verdict == nil:
		w.limiter.requests.correct(w.request, 0) // it was not sent
		w.limiter.tokens.correct(w.tokens, 0)
		c.correct(w, -1, -float64(w.call.Tokens))
		c.release(w)
		c.end(w, sdk.Result{Status: sdk.StatusLeft})
		c.dispatch()
	}
}

// dispatch admits all calls that may be sent now, and sets a timer for the next one. The
// caller holds mu.
func (c *Governor) dispatch() {
	now := time.Now()
	var next time.Duration
	if c.together != nil {
		c.together.short = nil
	}
	for _, g := range c.limiters {
		for {
			wait, again := c.dispatchOne(g, now)
			if wait > 0 && (next == 0 || wait < next) {
				next = wait
			}
			if !again {
				break
			}
		}
	}
	if c.wake != nil {
		c.wake.Stop()
		c.wake = nil
	}
	if next > 0 {
		c.wake = time.AfterFunc(next, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.dispatch()
		})
	}
}

// dispatchOne admits or refuses one call of a limiter. If it can do neither, it returns
// false and the time after which it may be able to; 0: when a call has ended.
func (c *Governor) dispatchOne(g *limiter, now time.Time) (wait time.Duration, again bool) {
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
		pause, err := w.breaker.ready(now)
		if w.breaker.asks() {
			c.together.want()
		}
		waits := pause > 0
		switch {
		case waits && w.call.Alternative:
			err = sdk.Transient(fmt.Errorf("%s wants no calls for another %s%s", w.breaker.name, pause.Round(time.Millisecond), w.breaker.because()), pause)
		case err != nil && w.host.waits() && w.call.Alternative:
			if pause, late := w.breaker.requiredWait(now); late == nil {
				err = sdk.Transient(err, max(pause, downPause)) // any of the services may be back first
			}
		case err != nil && w.host.waits():
			waits = true
			if pause, err = w.breaker.requiredWait(now); err != nil {
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
		case c.budgeted(w, now):
		case c.inFlight > 0 || c.together != nil:
			return 0, false
		default:
			c.spent = c.budget.spent(w.estimate)
			c.refuse(c.spent, func(*stage) bool { return true })
			return 0, true
		}
		if pause, ok := g.room(now, w); !ok && !w.call.Batch {
			g.given.wait(g.inFlight)
			return pause, false
		}
		c.admit(g, at, now)
		return 0, true
	}
	return wait, false
}

func (c *Governor) admit(g *limiter, at int, now time.Time) {
	w := g.pop(at)
	w.began, g.admitted = now, now
	c.flying[w] = true
	if !w.call.Batch { // which is under way for hours, and bounded by its service in other ways
		w.request = g.requests.take(now, 1)
		w.tokens = g.tokens.take(now, float64(w.call.Tokens))
		w.use = g.given.take(now, w.call.Tokens)
		w.trial = w.breaker.begin()
		if w.trial {
			c.say(Event{Endpoint: w.breaker.name, Trying: true})
		}
		g.inFlight++
	}
	c.budget.reserve(w.estimate)
	c.together.reserve(w.estimate)
	c.inFlight++
	w.host.stage.InFlight++
	w.verdict <- nil
}

// release removes a call from those in flight.
func (c *Governor) release(w *waiter) {
	c.inFlight--
	delete(c.flying, w)
	if !w.call.Batch {
		w.limiter.inFlight--
		w.limiter.given.left(w.limiter.inFlight)
	}
	w.host.stage.InFlight--
	c.budget.release(w.estimate)
	if c.inFlight == 0 {
		c.budget.reserved = estimate{} // rounding errors
	}
}

// end tells the breaker how a call ended. That of a batch says nothing of the service now.
func (c *Governor) end(w *waiter, o sdk.Result) {
	if w.call.Batch {
		return
	}
	if o.Status == sdk.StatusDown && !w.host.stage.covered {
		o.RetryAfter = 0 // who waits gives a service that restarts some seconds
	}
	now, before := time.Now(), *w.breaker
	w.breaker.end(now, w.began, w.trial, o)
	if c.together != nil {
		c.learn(now, w, &before, o)
	}
}
