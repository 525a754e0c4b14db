package governor

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/sdk"
)

// Demand reports what the calls of a Governor need, and how much of its grant they use.
type Demand struct {
	Number   uint64   `json:"number"` // sequence number, from 1
	Limiters []Need   `json:"limiters,omitempty"`
	Budget   Spending `json:"budget,omitzero"`
	Trials   []Trial  `json:"trials,omitempty"`
}

// Need reports what the calls of one limiter need.
type Need struct {
	Block    string `json:"block,omitempty"`
	Endpoint string `json:"endpoint,omitempty"`
	Share    int    `json:"share,omitempty"`     // granted; 0 after the grant has ended
	InFlight int    `json:"in_flight,omitempty"` // can exceed a share that was reduced
	Waiting  int    `json:"waiting,omitempty"`
	Peak     int    `json:"peak,omitempty"` // maximum of InFlight + Waiting since the previous Demand
	Requests Credit `json:"requests,omitzero"`
	Tokens   Credit `json:"tokens,omitzero"`
	Tally    int64  `json:"tally,omitempty"` // number of the Use that counts new calls
	Uses     []Use  `json:"uses,omitempty"`  // the uses that have changed, with their full amounts
}

// Credit is a limiter's part of a limit per minute: what it may use, and what it has used.
type Credit struct {
	Most    float64 `json:"most,omitempty"`    // granted maximum of Used; equals Used after the grant has ended
	Used    float64 `json:"used,omitempty"`    // total; calls under way count as estimated
	Taken   float64 `json:"taken,omitempty"`   // total of the estimates
	First   float64 `json:"first,omitempty"`   // needed by the first waiting call
	Waiting float64 `json:"waiting,omitempty"` // needed by the waiting calls, as many as a share admits
}

// Spending is a Governor's part of the budget.
type Spending struct {
	Most     Amount  `json:"most,omitzero"` // granted maximum of Spent + Reserved; equals their sum after the grant has ended
	Spent    Amount  `json:"spent,omitzero"`
	Reserved Amount  `json:"reserved,omitzero"`
	Taken    Amount  `json:"taken,omitzero"` // total of all reservations ever made
	Calls    int     `json:"calls,omitempty"`
	InFlight int     `json:"in_flight,omitempty"`
	First    *Amount `json:"first,omitempty"` // needed by the first call that waits for the budget; nil: none waits
	Waiting  Amount  `json:"waiting,omitzero"`
}

// Trial reports an endpoint that is down.
type Trial struct {
	Endpoint string `json:"endpoint"`
	Trying   bool   `json:"trying,omitempty"` // the trial call is under way; false: it waits for permission
}

// sizedUp is the maximum number of waiting calls whose needs a Demand adds up.
const sizedUp = 256

// Demand returns what the calls need now, and the uses that have changed since the Demand numbered since.
func (c *Governor) Demand(since uint64) Demand {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, now := c.together, time.Now()
	over := t.over(now)
	t.demand++
	d := Demand{Number: t.demand}
	for _, l := range c.limiters {
		d.Limiters = append(d.Limiters, l.need(now, since, over, &d.Budget))
	}
	if c.budget.limited() {
		b, s := &c.budget, &d.Budget
		s.Spent, s.Calls, s.Taken, s.InFlight = Amount{b.cost, b.tokens}, b.calls, t.taken, c.inFlight
		s.Reserved = Amount{max(b.reserved.cost, 0), b.reserved.tokens}
		if s.Most = t.budget; over {
			s.Most = Amount{s.Spent.Cost + s.Reserved.Cost, s.Spent.Tokens + s.Reserved.Tokens}
		}
		if t.short != nil {
			s.First = &Amount{t.short.cost, t.short.tokens}
		}
	} else {
		d.Budget = Spending{}
	}
	for name, b := range c.breakers {
		if b.trying || !b.asked.IsZero() && b.open {
			d.Trials = append(d.Trials, Trial{name, b.trying})
		}
	}
	return d
}

// need returns what the calls of a limiter need, and adds what they need of the budget to budget.
func (l *limiter) need(now time.Time, since uint64, over bool, budget *Spending) Need {
	g := l.given
	n := Need{Block: l.block, Endpoint: l.endpoint, InFlight: l.inFlight, Requests: g.requests.credit(over), Tokens: g.tokens.credit(over)}
	if !over {
		n.Share = g.share
	}
	g.announced = n.Share
	room := min(max(n.Share-l.inFlight, 1), sizedUp)
	for i := range l.queues {
		q := l.queues[(l.turn+i)%len(l.queues)]
		for _, w := range q.waiting[:min(len(q.waiting), room)] {
			if n.Requests.First == 0 {
				n.Requests.First, n.Tokens.First = 1, l.given.tokens.need(w)
			}
			n.Requests.Waiting++
			n.Tokens.Waiting += g.tokens.need(w)
			budget.Waiting.Cost += w.estimate.cost
			budget.Waiting.Tokens += w.estimate.tokens
			room--
		}
		n.Waiting += len(q.waiting)
	}
	n.Peak = max(g.peak, n.Waiting+n.InFlight)
	g.peak = 0
	if k := len(g.tallies); k > 0 {
		if n.Tally = g.tallies[k-1].Number; now.Sub(g.tallies[k-1].began) >= tallyFor {
			n.Tally++
		}
	}
	for _, t := range g.tallies {
		if t.changed >= since {
			n.Uses = append(n.Uses, t.Use)
		}
	}
	return n
}

func (c *ceiling) need(w *waiter) float64 { return min(float64(w.call.Tokens), c.limit) }

func (c *ceiling) credit(over bool) Credit {
	if c.limit == 0 {
		return Credit{}
	}
	if over {
		return Credit{Most: c.used, Used: c.used, Taken: c.taken}
	}
	return Credit{Most: c.most, Used: c.used, Taken: c.taken}
}

// waiter is a call that waits for admission or is in flight.
type waiter struct {
	host     *host
	limiter  *limiter
	breaker  *breaker
	call     sdk.Call
	estimate estimate
	verdict  chan error // receives one value: nil admits the call, an error refuses it
	queued   bool
	queuedAt time.Time

	began           time.Time
	request, tokens *use
	use             *tally // only for a limit that Governors share
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

// withdraw removes a call that its caller has cancelled.
func (c *Governor) withdraw(w *waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case w.queued:
		w.limiter.queue(w.host.stage).remove(w)
		c.dispatch() // other calls may have waited behind it
	case <-w.verdict == nil:
		w.limiter.requests.correct(w.request, 0) // the call was not sent
		w.limiter.tokens.correct(w.tokens, 0)
		c.correct(w, -1, -float64(w.call.Tokens))
		c.release(w)
		c.end(w, sdk.Result{Status: sdk.StatusLeft})
		c.dispatch()
	}
}

// dispatch admits every call that may be sent now, and sets a timer for the next one. The caller
// holds mu.
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

// dispatchOne admits or refuses one call of a limiter. If it can do neither, it returns false and
// the time after which to try again; 0: after a call has ended.
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
				err = sdk.Transient(err, max(pause, downPause)) // any of the services may recover first
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
	if !w.call.Batch { // a batch runs for hours, and its service limits it in other ways
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

// release removes a call from the calls in flight.
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
		c.budget.reserved = estimate{} // removes rounding errors
	}
}

// end reports the result of a call to the breaker. It ignores batches: their results say nothing about the service now.
func (c *Governor) end(w *waiter, o sdk.Result) {
	if w.call.Batch {
		return
	}
	if o.Status == sdk.StatusDown && !w.host.stage.covered {
		o.RetryAfter = 0 // the waiting calls give a restarting service some seconds
	}
	now, before := time.Now(), *w.breaker
	w.breaker.end(now, w.began, w.trial, o)
	if c.together != nil {
		c.learn(now, w, &before, o)
	}
}

// Amount is money, in the currency of the file's prices, and tokens, input plus output.
type Amount struct {
	Cost   float64 `json:"cost,omitempty"`
	Tokens int64   `json:"tokens,omitempty"`
}

// Grant is what a Governor may use of limits that it shares with other Governors. It replaces the
// previous Grant.
type Grant struct {
	Until    time.Time // no call is admitted after this time
	Limiters []Given   // the limiters that a Demand named
	Budget   Amount    // maximum of spent plus reserved, in total
	Spent    string    // why the shared budget is used up; empty: it is not
	Trials   []string  // endpoints that are down and that this Governor may send a trial call to
}

// Given is one Governor's part of a limit.
type Given struct {
	Block    string  `json:"block,omitempty"`    // name of the limit block; empty: the limit of an endpoint
	Endpoint string  `json:"endpoint,omitempty"` // set if there is no block
	Share    int     `json:"share"`              // maximum calls at a time
	Requests float64 `json:"requests,omitempty"` // maximum total use, if the block limits requests
	Tokens   float64 `json:"tokens,omitempty"`
}

// joint is the state of a Governor whose limits are granted from outside.
type joint struct {
	until  time.Time     // when the grant ends
	budget Amount        // granted
	taken  Amount        // total of all reservations ever made
	short  *estimate     // the first call that exceeds the budget; nil: none waits for it
	said   bool          // the shortage was reported after the last grant that raised the budget
	demand uint64        // number of the last Demand
	wants  chan struct{} // has an element when the next Demand should be sent early
	events chan Event
}

// over reports whether the grant has ended. It also compares the wall clock, because the monotonic
// clock stands still while a machine sleeps.
func (t *joint) over(now time.Time) bool {
	return !now.Before(t.until) || !now.Round(0).Before(t.until.Round(0))
}

// Together makes the Governor share its limits and the budget b with other Governors. Call it
// before the first call. From then on it admits only what a Grant allows, Demand reports what calls
// need, and Learnt and Hear exchange news about endpoints. All Governors together keep the budget.
func (c *Governor) Together(b pipeline.Budget) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.together = &joint{wants: make(chan struct{}, 1), events: make(chan Event, 1024)}
	c.budget.Budget = b
}

// want asks for another grant soon.
func (t *joint) want() {
	select {
	case t.wants <- struct{}{}:
	default:
	}
}

// Wants has an element when calls begin to wait for more than the grant, or when the calls under way no
// longer exceed a reduced share: then a new Demand should be sent. It is nil before Together.
func (c *Governor) Wants() <-chan struct{} {
	if c.together == nil {
		return nil
	}
	return c.together.wants
}

// Grant sets what the Governor may use from now on.
func (c *Governor) Grant(g Grant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.together
	t.until = g.Until
	if g.Budget.Cost > t.budget.Cost || g.Budget.Tokens > t.budget.Tokens {
		t.said = false
	}
	t.budget = g.Budget
	for _, given := range g.Limiters {
		if l := c.find(given.Block, given.Endpoint); l != nil && l.given != nil {
			l.given.set(given, l.inFlight)
		}
	}
	for name, b := range c.breakers {
		b.permitted = time.Time{}
		for _, trial := range g.Trials {
			if trial == name {
				b.permitted, b.asked = g.Until, time.Time{}
			}
		}
	}
	switch {
	case g.Spent == "":
		c.spent = nil // another part of the run may have begun
	case c.spent == nil:
		c.spent = &sdk.Error{Code: sdk.CodeStopped, Err: errors.New(g.Spent)}
		c.refuse(c.spent, func(*stage) bool { return true })
	}
	c.dispatch()
}

// budgeted reports whether the budget has room for a call. If Governors share the budget, a call
// without room waits for a larger grant.
func (c *Governor) budgeted(w *waiter, now time.Time) bool {
	fits := c.affords(w.estimate, now)
	if t := c.together; !fits && t != nil {
		if t.short == nil {
			e := w.estimate
			t.short = &e
		}
		if !t.said {
			t.said = true
			t.want()
		}
	}
	return fits
}

func (c *Governor) affords(e estimate, now time.Time) bool {
	t, b := c.together, &c.budget
	if t == nil || !b.limited() {
		return b.fits(e)
	}
	costs := b.Cost == 0 || b.cost+b.reserved.cost+e.cost <= t.budget.Cost*(1+rounding)
	return costs && !t.over(now) && (b.Tokens == 0 || b.tokens+b.reserved.tokens+e.tokens <= t.budget.Tokens)
}
