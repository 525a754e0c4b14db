package lease

import (
	"time"
)

// terms are how long things hold.
type terms struct {
	lease time.Duration // a grant, from when its report was sent
	every time.Duration // between reports
	claim time.Duration // of the keeper; renewed thrice as often
}

func usual() terms {
	return terms{lease: 10 * time.Second, every: 200 * time.Millisecond, claim: 6 * time.Second}
}

// asking is how long an answer to a report is waited for.
func (t terms) asking() time.Duration { return t.lease / 10 }

// book has what all holders have, and decides what they get. It knows no clock and no servers.
type book struct {
	terms   terms
	keeper  string // who keeps it
	limits  Limits
	pools   map[name]*pool
	purse   *purse
	holders map[string]*holder
	trials  map[string]trial // by endpoint
	records map[name]rates   // of an earlier keeper, of limits that nobody asked for yet
	began   time.Time        // when this keeper took over
	age     time.Duration    // of the records, then

	frozen time.Time       // until then leases of an earlier keeper may hold
	former map[string]bool // those of its holders that were not heard yet
}

// holder is a process that reports.
type holder struct {
	number uint64    // of its last report
	until  time.Time // its lease
}

// trial says who tries an endpoint that is down.
type trial struct {
	holder string
	until  time.Time
}

func newBook(keeper string, limits Limits, t terms) *book {
	return &book{
		terms: t, keeper: keeper, limits: limits, pools: map[name]*pool{}, purse: newPurse(limits),
		holders: map[string]*holder{}, trials: map[string]trial{}, records: map[name]rates{},
	}
}

// report decides what a holder gets that reports. write: the ledger as it is now must be written
// before the answer goes out. An answer of nil: the report is older than one that has come.
func (b *book) report(now time.Time, r report) (a *answer, write bool) {
	b.expire(now)
	h := b.holders[r.Holder]
	if h == nil {
		h = &holder{}
		b.holders[r.Holder] = h
	}
	if r.Number <= h.number {
		return nil, false
	}
	h.number = r.Number
	if r.Leaving {
		b.leave(r)
		return &answer{Keeper: b.keeper}, true
	}
	known := !h.until.IsZero() || b.former[r.Holder]
	write = !known // the next keeper has to know of its lease
	h.until = now.Add(b.terms.lease)
	delete(b.former, r.Holder)
	frozen := len(b.former) > 0 // leases of an earlier keeper may hold that are not known
	a = &answer{Keeper: b.keeper, Lease: b.terms.lease, Every: max(b.terms.every, time.Duration(len(b.holders))*500*time.Microsecond)}
	for _, n := range r.Limiters {
		if !known { // its lease was over before the report came
			n.Share, n.Requests.Most, n.Tokens.Most = 0, n.Requests.Used, n.Tokens.Used
		}
		p := b.pool(now, name{n.Block, n.Endpoint})
		given := p.grant(now, p.report(now, r.Holder, n), n, frozen)
		write = write || given.Requests > n.Requests.Most+rounding || given.Tokens > n.Tokens.Most+rounding
		a.Limiters = append(a.Limiters, given)
	}
	if b.limits.Budget != (Amount{}) {
		a.Budget = b.purse.grant(b.purse.report(now, r.Holder, r.Budget), frozen)
		a.Spent = b.purse.spent
		write = write || a.Budget.Cost > r.Budget.Most.Cost || a.Budget.Tokens > r.Budget.Most.Tokens
	}
	a.Trials = b.permit(now, r)
	return a, write
}

// pool returns that of a limiter.
func (b *book) pool(now time.Time, n name) *pool {
	if p := b.pools[n]; p != nil {
		return p
	}
	limit := Limit{Concurrency: b.limits.Endpoint}
	for _, l := range b.limits.Blocks {
		if l.Name == n.block {
			limit = l
		}
	}
	p := newPool(limit, now)
	if r, ok := b.records[n]; ok {
		age := b.age + now.Sub(b.began)
		p.requests.recall(r.Requests, age)
		p.tokens.recall(r.Tokens, age)
	}
	b.pools[n] = p
	return p
}
