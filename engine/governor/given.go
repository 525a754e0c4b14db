package governor

import (
	"time"

	"github.com/racflow/racflow/engine/pipeline"
)

// given is the part that a limiter has of a limit that is held together with others.
type given struct {
	of               *joint
	share            int
	requests, tokens ceiling
	tallies          []*tally // of the last window, oldest first

	peak    int  // the most calls under way and waiting since the last Demand
	told    int  // the share that the last Demand said
	lowered bool // more calls are under way than the share
	// Whether it was said that calls wait for a larger share, or for credit, since there was more.
	crowded, short bool
}

// ceiling bounds an amount that is only ever added up.
type ceiling struct {
	limit float64 // per minute; 0: any amount
	most  float64 // that may have been used, in all
	used  float64 // in all: as estimated for calls under way
	taken float64 // as estimated, in all
}

// tally counts what was used of calls that began about the same time.
type tally struct {
	Use
	began   time.Time
	changed uint64 // number of the Demand before the last change
}

// Use is what was used of calls that began about the same time: as estimated of those under way.
type Use struct {
	Number   int64   `json:"number"` // grows with time
	Requests float64 `json:"requests,omitempty"`
	Tokens   float64 `json:"tokens,omitempty"`
}

// tallyFor is for how long calls are counted together.
const tallyFor = time.Second

func newGiven(of *joint, l *pipeline.Limit) *given {
	g := &given{of: of}
	if l != nil {
		g.requests.limit, g.tokens.limit = float64(l.Requests), float64(l.Tokens)
	}
	return g
}

func (c *ceiling) fits(amount float64) bool {
	return c.limit == 0 || c.used+min(amount, c.limit) <= c.most+rounding
}

// set takes over what was granted.
func (g *given) set(o Given, inFlight int) {
	g.crowded = g.crowded && o.Share <= g.share
	g.short = g.short && o.Requests <= g.requests.most && o.Tokens <= g.tokens.most
	g.share, g.requests.most, g.tokens.most = o.Share, o.Requests, o.Tokens
	if g.lowered = inFlight > g.share; !g.lowered && g.share < g.told {
		g.of.want() // others wait to be given it
	}
}

// left notes that a call has ended.
func (g *given) left(inFlight int) {
	if g != nil && g.lowered && inFlight <= g.share {
		g.lowered = false
		g.of.want()
	}
}

// allows reports whether a call may be sent beside those under way.
func (g *given) allows(now time.Time, inFlight int, w *waiter) bool {
	return !g.of.over(now) && inFlight < g.share && g.requests.fits(1) && g.tokens.fits(float64(w.call.Tokens))
}

// wait notes that a call waits for more than is granted.
func (g *given) wait(inFlight int) {
	if g == nil {
		return
	}
	said := &g.short
	if inFlight >= g.share {
		said = &g.crowded
	}
	if !*said {
		*said = true
		g.of.want()
	}
}

// crowd notes that a call has come.
func (l *limiter) crowd() {
	g := l.given
	if g == nil {
		return
	}
	waiting := 0
	for _, q := range l.queues {
		waiting += len(q.waiting)
	}
	g.peak = max(g.peak, l.inFlight+waiting)
	if waiting == 1 { // the first
		g.crowded, g.short = false, false
	}
}

// take counts an admitted call.
func (g *given) take(now time.Time, tokens int) *tally {
	if g == nil {
		return nil
	}
	n := len(g.tallies)
	if n == 0 || now.Sub(g.tallies[n-1].began) >= tallyFor {
		t := &tally{began: now}
		if n > 0 {
			t.Number = g.tallies[n-1].Number + 1
		}
		g.tallies = append(g.tallies, t)
	}
	for len(g.tallies) > 1 && now.Sub(g.tallies[0].began) > window+10*tallyFor {
		g.tallies[0] = nil
		g.tallies = g.tallies[1:]
	}
	t := g.tallies[len(g.tallies)-1]
	g.requests.taken++
	g.tokens.taken += float64(tokens)
	g.correct(t, 1, float64(tokens))
	return t
}

func (g *given) correct(t *tally, requests, tokens float64) {
	g.requests.used += requests
	g.tokens.used += tokens
	t.Requests += requests
	t.Tokens += tokens
	t.changed = g.of.demand
}

// correct adds to what a call used; less, if it turned out to have used less.
func (c *Governor) correct(w *waiter, requests, tokens float64) {
	if w.use != nil {
		w.limiter.given.correct(w.use, requests, tokens)
	}
}

// reserve counts an admitted call.
func (t *joint) reserve(e estimate) {
	if t != nil {
		t.taken.Cost += e.cost
		t.taken.Tokens += e.tokens
	}
}
