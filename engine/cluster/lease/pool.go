package lease

import (
	"slices"
	"time"

	"github.com/racflow/racflow/engine/governor"
)

// pool is a limit with what each holder has of it.
type pool struct {
	concurrency      int
	requests, tokens *window // nil: any number
	holders          map[string]*holding
	shares           []*share // of holders, in the order in which they came
	held             int      // of all shares
	divided          time.Time
}

// holding is what a holder has of a pool.
type holding struct {
	share
	requests, tokens credit
	inFlight         int
	waiting          bool
}

func newPool(l Limit, now time.Time) *pool {
	return &pool{
		concurrency: l.Concurrency, requests: newWindow(l.Requests, now), tokens: newWindow(l.Tokens, now),
		holders: map[string]*holding{},
	}
}

func (p *pool) advance(now time.Time) {
	for _, w := range []*window{p.requests, p.tokens} {
		if w != nil {
			w.advance(now)
		}
	}
}

// report takes over what a holder says that it has and needs.
func (p *pool) report(now time.Time, holder string, n governor.Need) *holding {
	h := p.holders[holder]
	if h == nil {
		h = &holding{share: share{holder: holder}, requests: credit{first: n.Tally}, tokens: credit{first: n.Tally}}
		p.holders[holder] = h
		p.shares = append(p.shares, &h.share)
		p.divided = time.Time{}
	}
	p.advance(now)
	p.hold(h, max(n.Share, n.InFlight))
	h.see(now, n.Peak)
	h.inFlight, h.waiting = n.InFlight, n.Waiting > 0
	if p.requests != nil {
		h.requests.report(now, p.requests, n.Requests, pick(n.Uses, func(u governor.Use) float64 { return u.Requests }), n.Tally)
	}
	if p.tokens != nil {
		h.tokens.report(now, p.tokens, n.Tokens, pick(n.Uses, func(u governor.Use) float64 { return u.Tokens }), n.Tally)
	}
	return h
}

func pick(uses []governor.Use, of func(governor.Use) float64) []use {
	all := make([]use, len(uses))
	for i, u := range uses {
		all[i] = use{u.Number, of(u)}
	}
	return all
}

// hold sets how many calls a holder may have under way.
func (p *pool) hold(h *holding, calls int) {
	p.held += calls - h.held
	h.held = calls
}

// grant decides what a holder gets. While leases of an earlier keeper hold, nobody gets a larger share.
func (p *pool) grant(now time.Time, h *holding, n governor.Need, frozen bool) governor.Given {
	if now.Sub(p.divided) >= time.Duration(len(p.shares))*50*time.Microsecond {
		divide(now, p.concurrency, p.shares)
		p.divided = now
	}
	given := n.Share
	if !frozen {
		given = max(given, p.concurrency-(p.held-h.held))
	}
	given = max(min(given, h.target), 0)
	p.hold(h, max(h.held, given))
	g := governor.Given{Block: n.Block, Endpoint: n.Endpoint, Share: given}
	waits := h.waiting && given > h.inFlight
	if p.requests != nil {
		g.Requests = p.lend(now, h, p.requests, waits, true, func(h *holding) *credit { return &h.requests })
	}
	if p.tokens != nil {
		g.Tokens = p.lend(now, h, p.tokens, waits, false, func(h *holding) *credit { return &h.tokens })
	}
	return g
}

// lend decides up to what a holder may use of a rate.
func (p *pool) lend(now time.Time, h *holding, w *window, waits, whole bool, of func(*holding) *credit) float64 {
	c := of(h)
	c.starve(now, waits)
	before, others := 0.0, 0
	for _, o := range p.holders {
		d := of(o)
		if o == h || d.hungry.IsZero() {
			continue
		}
		others++
		if c.hungry.IsZero() || d.hungry.Before(c.hungry) {
			before += max(d.First-d.unused, 0)
		}
	}
	return c.grant(w, waits, before, others, whole)
}

// lose forgets a holder whose lease is over: it may have used all that it was granted.
func (p *pool) lose(holder string) {
	h := p.holders[holder]
	if h == nil {
		return
	}
	p.hold(h, 0)
	for w, c := range map[*window]*credit{p.requests: &h.requests, p.tokens: &h.tokens} {
		if w != nil {
			w.use(c.unused)
			w.hold(-c.unused)
		}
	}
	delete(p.holders, holder)
	p.shares = slices.DeleteFunc(p.shares, func(s *share) bool { return s == &h.share })
	p.divided = time.Time{}
}
