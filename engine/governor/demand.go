package governor

import (
	"time"
)

// Demand is what the calls of a Governor need, and what they have.
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

// Credit is what a limiter has of an amount per minute.
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

// sizedUp is of how many calls that wait a Demand says at most what they need.
const sizedUp = 256

// Demand says what the calls need now, and of what was used all that has changed since the Demand
// of the given number.
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

// need is what the calls of a limiter need; what they need of the budget is added.
func (l *limiter) need(now time.Time, since uint64, over bool, budget *Spending) Need {
	g := l.given
	n := Need{Block: l.block, Endpoint: l.endpoint, InFlight: l.inFlight, Requests: g.requests.credit(over), Tokens: g.tokens.credit(over)}
	if !over {
		n.Share = g.share
	}
	g.told = n.Share
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
