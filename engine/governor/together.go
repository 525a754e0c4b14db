package governor

import (
	"errors"
	"time"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

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

// over reports whether nothing is granted any more. The time of day is looked at, too: the other
// clock stands still while a machine sleeps.
func (t *joint) over(now time.Time) bool {
	return !now.Before(t.until) || !now.Round(0).Before(t.until.Round(0))
}

// Together makes the Governor one of several that hold their limits and a budget together, before
// its first call: from then on nothing is admitted but what Grant lets through, Demand says what the
// calls need, and Learnt and Hear tell of endpoints. The budget is that of all.
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
