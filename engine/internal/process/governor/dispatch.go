package governor

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/sdk"
)

// Demand is what the calls of a Governor need, and how much they use of what it was granted.
type Demand struct {
	Number   uint64   `json:"number"` // of the Demand, from 1
	Limiters []Need   `json:"limiters,omitempty"`
	Budget   Spending `json:"budget,omitzero"`
	Trials   []Trial  `json:"trials,omitempty"`
}

// Need is what the calls of one limiter need.
type Need struct {
	Block    string `json:"block,omitempty"`
	Endpoint string `json:"endpoint,omitempty"`
	Share    int    `json:"share,omitempty"`     // granted; 0 once the grant is over
	InFlight int    `json:"in_flight,omitempty"` // may be more than a share that was made smaller
	Waiting  int    `json:"waiting,omitempty"`
	Peak     int    `json:"peak,omitempty"` // the most of both together since the Demand before
	Requests Credit `json:"requests,omitzero"`
	Tokens   Credit `json:"tokens,omitzero"`
	Tally    int64  `json:"tally,omitempty"` // the number of the uses that calls are added to from now on
	Uses     []Use  `json:"uses,omitempty"`  // that have changed, each as a whole
}

// Credit is what a limiter may use, and has used, of a limit per minute.
type Credit struct {
	Most    float64 `json:"most,omitempty"`    // that may have been used: as granted; Used once the grant is over
	Used    float64 `json:"used,omitempty"`    // in all: as estimated for calls under way
	Taken   float64 `json:"taken,omitempty"`   // as estimated, in all
	First   float64 `json:"first,omitempty"`   // what the first call that waits needs
	Waiting float64 `json:"waiting,omitempty"` // what calls that wait need, as many as a share admits
}

// Spending is what a Governor has of the budget.
type Spending struct {
	Most     Amount  `json:"most,omitzero"` // that may have been spent and be reserved; just that once the grant is over
	Spent    Amount  `json:"spent,omitzero"`
	Reserved Amount  `json:"reserved,omitzero"`
	Taken    Amount  `json:"taken,omitzero"` // reserved, in all that was ever admitted
	Calls    int     `json:"calls,omitempty"`
	InFlight int     `json:"in_flight,omitempty"`
	First    *Amount `json:"first,omitempty"` // what the first call needs that waits for the budget; nil: none does
	Waiting  Amount  `json:"waiting,omitzero"`
}

// Trial is an endpoint that is down.
type Trial struct {
	Endpoint string `json:"endpoint"`
	Trying   bool   `json:"trying,omitempty"` // the trial call is under way; else one waits for permission
}

// sizedUp is the most waiting calls whose needs a Demand adds up.
const sizedUp = 256

// Demand says what the calls need now, and which uses have changed since the Demand of the given number.
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

// need is what the calls of a limiter need. It adds what they need of the budget to budget.
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

// end reports to the breaker how a call ended. That of a batch says nothing of the service now.
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

// Amount is money, in that of the file's prices, and tokens, in and out.
type Amount struct {
	Cost   float64 `json:"cost,omitempty"`
	Tokens int64   `json:"tokens,omitempty"`
}

// Grant is what a Governor may let through that holds its limits together with others. It takes
// the place of the grant before.
type Grant struct {
	Until    time.Time // after that no call is admitted
	Limiters []Given   // those that a Demand named
	Budget   Amount    // how much may have been spent and be reserved, in all
	Spent    string    // why the budget of all is spent; empty: it is not
	Trials   []string  // endpoints that are down, of which this Governor tries whether they are back
}

// Given is the part of a limit that one Governor has.
type Given struct {
	Block    string  `json:"block,omitempty"`    // of the limit block; empty: the limit of an endpoint
	Endpoint string  `json:"endpoint,omitempty"` // where there is no block
	Share    int     `json:"share"`              // calls at a time
	Requests float64 `json:"requests,omitempty"` // how many may have been used, in all; where the block limits them
	Tokens   float64 `json:"tokens,omitempty"`
}

// joint is the state of a Governor whose limits are given from outside.
type joint struct {
	until  time.Time     // of the grant
	budget Amount        // granted
	taken  Amount        // reserved, in all that was ever admitted
	short  *estimate     // the first call that the budget has no room for; nil: none waits for it
	said   bool          // that it is short, since the last grant that gave more
	demand uint64        // number of the last Demand
	wants  chan struct{} // has an element where an answer is wanted before the next Demand is due
	events chan Event
}

// over reports whether the grant has ended. It looks at the time of day, too, because the
// monotonic clock stands still while a machine sleeps.
func (t *joint) over(now time.Time) bool {
	return !now.Before(t.until) || !now.Round(0).Before(t.until.Round(0))
}

// Together makes the Governor one of several that hold their limits and a budget together, before
// its first call: from then on nothing is admitted but what Grant lets through, Demand says what the
// calls need, and Learnt and Hear are about endpoints. The budget is that of all.
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

// Wants has an element when calls have begun to wait for more than was granted, or a share that
// was made smaller is met: Demand is worth telling now. It is nil before Together.
func (c *Governor) Wants() <-chan struct{} {
	if c.together == nil {
		return nil
	}
	return c.together.wants
}

// Grant sets what the Governor may let through.
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

// budgeted reports whether the budget has room for a call. Where it is held together with others,
// one that has none is waited for.
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
