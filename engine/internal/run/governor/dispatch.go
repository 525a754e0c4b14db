package governor

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/racflow/racflow/sdk"
)

// waiter is a call that waits for admission or is in flight.
type waiter struct {
	host     *host
	limiter  *limiter
	breaker  *breaker
	call     sdk.Call
	estimate amount
	verdict  chan error // receives one value: nil admits the call, an error refuses it
	queued   bool
	queuedAt time.Time

	began           time.Time
	request, tokens *use
	trial           bool
}

// enqueue puts a call into its queue. The caller holds mu.
func (c *Governor) enqueue(h *host, call sdk.Call) *waiter {
	w := c.newWaiter(h, call)
	if c.budget.limited() && !bounded(call) && !h.stage.unbounded {
		h.stage.unbounded = true
		c.options.Log.Warn("no call says what it takes at most: the run may exceed its budget by what the calls in flight take", "stage", h.name)
	}
	w.queued = true
	w.limiter.queue(h.stage).add(w)
	c.dispatch()
	return w
}

func (c *Governor) newWaiter(h *host, call sdk.Call) *waiter {
	return &waiter{
		host: h, limiter: c.limiterOf(h, call.Endpoint), breaker: c.breakerOf(call.Endpoint), call: call,
		estimate: estimateOf(call, h.priceOf(call)), verdict: make(chan error, 1), queuedAt: time.Now(),
	}
}

func (c *Governor) breakerOf(endpoint string) *breaker {
	b := c.breakers[endpoint]
	if b == nil {
		b = &breaker{name: endpoint, log: c.options.Log}
		c.breakers[endpoint] = b
	}
	return b
}

// await queues a call, and waits until it may be sent.
func (c *Governor) await(ctx context.Context, h *host, call sdk.Call) (*waiter, error) {
	c.mu.Lock()
	w := c.enqueue(h, call)
	c.mu.Unlock()
	select {
	case err := <-w.verdict:
		return w, err
	case <-ctx.Done():
		c.withdraw(w)
		return nil, ctx.Err()
	}
}

// withdraw removes a call that its caller has cancelled.
func (c *Governor) withdraw(w *waiter) {
	c.mu.Lock()
	if w.queued {
		w.limiter.queue(w.host.stage).remove(w)
		c.dispatch() // calls behind it in the queue may be ready
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	if <-w.verdict == nil {
		c.takeBack(w)
	}
}

// takeBack ends an admitted call that was not sent.
func (c *Governor) takeBack(w *waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.limiter.requests.correct(w.request, 0)
	w.limiter.tokens.correct(w.tokens, 0)
	c.release(w)
	c.end(w, sdk.Result{Status: sdk.StatusLeft})
	c.dispatch()
}

// dispatch admits every call that may be sent now, and sets a timer for the next call. The caller
// holds mu.
func (c *Governor) dispatch() {
	now := time.Now()
	var next time.Duration
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

// dispatchOne admits or refuses one call of a limiter. If neither is possible yet, it returns false
// and the time after which to try again; 0: after a call has ended.
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
		waits := pause > 0
		switch {
		case waits && w.call.Alternative:
			err = sdk.Transient(fmt.Errorf("%s wants no calls for another %s%s", w.breaker.name, pause.Round(time.Millisecond), w.breaker.because()), pause)
		case err != nil && w.host.waits() && w.call.Alternative:
			if pause, late := w.breaker.requiredWait(now); late == nil {
				err = sdk.Transient(err, max(pause, downPause)) // wait only for the service that may recover first
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
		case c.budget.fits(w.estimate):
		case c.inFlight > 0:
			return 0, false
		default:
			c.spent = c.budget.spent(w.estimate)
			c.refuse(c.spent, func(*stage) bool { return true })
			return 0, true
		}
		if pause, ok := g.room(now, w); !ok && !w.call.Batch {
			return pause, false
		}
		c.admit(g, at, now)
		return 0, true
	}
	return wait, false
}

func (c *Governor) admit(g *limiter, at int, now time.Time) {
	w := g.pop(at)
	if !w.call.Batch { // a batch runs for hours, and its service limits it in other ways
		w.request = g.requests.record(now, 1)
		w.tokens = g.tokens.record(now, float64(w.call.Tokens))
		w.trial = w.breaker.begin()
	}
	c.begin(w, now)
	w.verdict <- nil
}

// begin counts a call as in flight.
func (c *Governor) begin(w *waiter, now time.Time) {
	w.began = now
	c.inFlight++
	c.flying[w] = true
	w.host.stage.InFlight++
	if w.limiter.admitted = now; !w.call.Batch {
		w.limiter.inFlight++
	}
	c.budget.reserve(w.estimate)
}

// release removes a call from the calls in flight.
func (c *Governor) release(w *waiter) {
	c.inFlight--
	delete(c.flying, w)
	w.host.stage.InFlight--
	if !w.call.Batch {
		w.limiter.inFlight--
	}
	c.budget.release(w.estimate)
	if c.inFlight == 0 {
		c.budget.reserved = amount{} // removes rounding errors
	}
}

// end reports the result of a call to the breaker. It ignores batches: their results say nothing about the service now.
func (c *Governor) end(w *waiter, o sdk.Result) {
	if w.call.Batch {
		return
	}
	if o.Status == sdk.StatusDown && !w.host.stage.covered {
		o.RetryAfter = 0 // the wait of the calls already gives a restarting service some seconds
	}
	w.breaker.end(time.Now(), w.began, w.trial, o)
}

// amount is money, in the currency of the file's prices, and tokens, input plus output.
type amount struct {
	Cost   float64
	Tokens int64
}

// plus returns the sum of two amounts.
func (a amount) plus(b amount) amount { return amount{a.Cost + b.Cost, a.Tokens + b.Tokens} }

// minus returns the difference of two amounts.
func (a amount) minus(b amount) amount { return amount{a.Cost - b.Cost, a.Tokens - b.Tokens} }

// spending is the usage of calls.
type spending struct {
	amount
	calls int // calls that used tokens
}
