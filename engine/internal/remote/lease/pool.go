package lease

import (
	"math"
	"slices"
	"time"

	"github.com/racflow/racflow/engine/internal/process/governor"
)

// pool is a limit with each holder's part of it.
type pool struct {
	concurrency      int
	requests, tokens *window // nil: no limit
	holders          map[string]*holding
	shares           []*share // of holders, in the order of their arrival
	held             int      // by all shares
	divided          time.Time
}

// holding is a holder's part of a pool.
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

// report applies a holder's report.
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

// grant decides what a holder gets. While leases of an earlier keeper last, no share grows.
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

// lend decides how much of a rate a holder may use in total.
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

// lose removes a holder whose lease has ended: it may have used its whole grant.
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

// allowance is the budget with each holder's part of it. Amounts that the budget does not limit are
// 0.
type allowance struct {
	limit, before Amount // before: spent before
	holders       map[string]*account
	spent         string // why nothing is left; empty: something is
}

// account is a holder's part of the budget.
type account struct {
	base   Amount // what it had spent before this part of the run
	rebase bool   // base is unknown yet
	took   Amount // taken by its calls, including the maximum of calls under way
	most   Amount // maximum that it may take
	gone   bool   // it no longer reports: all of most counts
	calls  int    // paid calls

	inFlight int
	first    *Amount // need of the first call that waits for the budget; nil: none
	ample    Amount  // its need until the next report
	pace     [2]pace
	hungry   time.Time // when first began to wait; zero: it does not
}

func newAllowance(l Limits) *allowance {
	p := &allowance{limit: l.Budget, holders: map[string]*account{}}
	p.before = p.limited(l.Spent)
	return p
}

// limited sets the parts of an amount that the budget does not limit to 0.
func (p *allowance) limited(a Amount) Amount {
	if p.limit.Cost == 0 {
		a.Cost = 0
	}
	if p.limit.Tokens == 0 {
		a.Tokens = 0
	}
	return a
}

// report applies a holder's report.
func (p *allowance) report(now time.Time, holder string, s governor.Spending) *account {
	a := p.holders[holder]
	if a == nil {
		a = &account{}
		p.holders[holder] = a
	}
	if a.rebase {
		a.base, a.rebase = p.limited(s.Spent), false
	}
	a.took = p.limited(plus(s.Spent, s.Reserved))
	a.most, a.gone = larger(p.limited(s.Most), a.took), false
	a.calls, a.inFlight, a.first = s.Calls, s.InFlight, nil
	if s.First != nil {
		first := p.limited(*s.First)
		a.first = &first
	}
	a.pace[0].see(now, s.Taken.Cost)
	a.pace[1].see(now, float64(s.Taken.Tokens))
	a.ample = p.limited(plus(s.Waiting, amount(a.pace[0].perSecond*ahead.Seconds(), int64(a.pace[1].perSecond*ahead.Seconds()))))
	switch {
	case a.first == nil || p.within(*a.first, a.has()):
		a.hungry = time.Time{}
	case a.hungry.IsZero():
		a.hungry = now
	}
	return a
}

// has returns the unused part of the grant.
func (a *account) has() Amount { return minus(a.most, a.took) }

// within reports whether an amount is no more than another.
func (p *allowance) within(a, of Amount) bool {
	return a.Cost <= of.Cost+rounding*p.limit.Cost && a.Tokens <= of.Tokens
}

// state is the rest of a budget.
type state struct {
	unspent Amount // neither spent nor reserved by calls under way
	free    Amount // not granted, either
	live    int    // holders that report
	idle    bool   // none of them has a call under way
	scarce  bool   // a holder waits that gets enough only if others return their surplus
}

func (p *allowance) state() state {
	s := state{idle: true, unspent: minus(p.limit, p.before)}
	s.free = s.unspent
	for _, a := range p.holders {
		took := a.took
		if a.gone {
			took = a.most
		} else {
			s.live++
			s.idle = s.idle && a.inFlight == 0
		}
		s.unspent, s.free = minus(s.unspent, minus(took, a.base)), minus(s.free, minus(a.most, a.base))
	}
	for _, a := range p.holders {
		s.scarce = s.scarce || !a.gone && !a.hungry.IsZero() && !p.within(minus(*a.first, a.has()), s.free)
	}
	return s
}

// grant decides how much a holder may spend in total. While leases of an earlier keeper last, it is
// unknown whether the budget is used up.
func (p *allowance) grant(a *account, frozen bool) Amount {
	s := p.state()
	before, others := Amount{}, false // before: needs of those that have waited longer; others: some have unused grants
	for _, o := range p.holders {
		if o == a || o.gone {
			continue
		}
		others = others || !p.within(o.most, o.took)
		if !o.hungry.IsZero() && (a.hungry.IsZero() || o.hungry.Before(a.hungry)) && p.within(*o.first, s.unspent) {
			before = plus(before, *o.first)
		}
	}
	hungry := !a.hungry.IsZero()
	if hungry && !p.within(*a.first, s.unspent) && s.idle && !others && !frozen && p.spent == "" {
		p.spent = governor.Spent(p.limit, minus(p.limit, s.unspent), p.calls(), *a.first)
	}
	room, want := minus(s.unspent, before), Amount{}
	if !s.scarce {
		n := int64(2 * s.live) // little for the others, in case one finds the rest too small
		want = larger(smaller(a.ample, amount(room.Cost/float64(n), room.Tokens/n)), Amount{})
	}
	if hungry {
		if want = larger(want, *a.first); !p.within(*a.first, room) {
			want = Amount{}
		}
	}
	has := a.has()
	if p.within(want, has) { // the surplus is returned
		return plus(a.took, want)
	}
	get := plus(has, larger(smaller(minus(want, has), s.free), Amount{}))
	if hungry && !p.within(*a.first, get) {
		return a.most // a part would be useless
	}
	a.most = plus(a.took, get)
	return a.most
}

func (p *allowance) calls() (n int) {
	for _, a := range p.holders {
		n += a.calls
	}
	return n
}

func amount(cost float64, tokens int64) Amount { return Amount{Cost: cost, Tokens: tokens} }

func plus(a, b Amount) Amount    { return amount(a.Cost+b.Cost, a.Tokens+b.Tokens) }
func minus(a, b Amount) Amount   { return amount(a.Cost-b.Cost, a.Tokens-b.Tokens) }
func larger(a, b Amount) Amount  { return amount(max(a.Cost, b.Cost), max(a.Tokens, b.Tokens)) }
func smaller(a, b Amount) Amount { return amount(min(a.Cost, b.Cost), min(a.Tokens, b.Tokens)) }

// Uses are counted in slots: all uses of a slot leave the window together with its last one.
const (
	slotFor = 250 * time.Millisecond
	slots   = int(governor.Window/slotFor) + 1
)

// rounding is the error that sums may have.
const rounding = 1e-6

// window limits the uses of all holders within a minute, like the governor's own rate: by the sum
// over the last window, and by a bucket that spreads uses evenly. A grant counts until it is used
// or returned.
type window struct {
	limit  float64
	began  time.Time // start of slot 0
	used   [slots]float64
	slot   int64   // the current one, from 0; stored at index slot mod slots
	sum    float64 // of the amounts in used
	held   float64 // granted and unused
	level  float64 // of the bucket
	filled time.Time
}

// newWindow returns nil if there is no limit.
func newWindow(limit int, now time.Time) *window {
	if limit <= 0 {
		return nil
	}
	w := &window{limit: float64(limit), began: now, filled: now}
	w.level = w.capacity()
	return w
}

func (w *window) capacity() float64 { return max(w.limit*governor.Burst, 1) }

// advance drops slots that have left the window, and refills the bucket.
func (w *window) advance(now time.Time) {
	for current := int64(now.Sub(w.began) / slotFor); w.slot < current; {
		if current-w.slot > int64(slots) {
			w.slot = current - int64(slots)
		}
		w.slot++
		at := w.slot % int64(slots)
		w.sum -= w.used[at]
		w.used[at] = 0
	}
	if w.sum < rounding {
		w.sum = 0
	}
	w.level = min(w.level+now.Sub(w.filled).Minutes()*w.limit, w.capacity())
	w.filled = now
}

// use adds an amount to the current slot, and returns the slot.
func (w *window) use(amount float64) int64 {
	w.add(w.slot, amount)
	return w.slot
}

// add changes the use in a slot, unless the slot has left the window.
func (w *window) add(slot int64, amount float64) {
	if w.slot-slot < int64(slots) {
		w.used[slot%int64(slots)] += amount
		w.sum += amount
		w.level = min(w.level-amount, w.capacity())
	}
}

// hold changes the amount that is granted and unused.
func (w *window) hold(amount float64) {
	w.held += amount
	w.level = min(w.level-amount, w.capacity())
}

// room returns how much may be granted now.
func (w *window) room() float64 { return max(min(w.limit-w.sum-w.held, w.level), 0) }

// admits reports whether an amount may be granted. An amount above the bucket's capacity may be
// once the bucket is full.
func (w *window) admits(amount float64) bool {
	return w.sum+w.held+amount <= w.limit+rounding && w.level >= min(amount, w.capacity())-rounding
}

// Record is the form of a window in a ledger.
type Record struct {
	Used []float64 `json:"used"` // by slot of 250 ms, the current one first, without trailing empty ones
	Held float64   `json:"held"`
}

func (w *window) record() *Record {
	if w == nil {
		return nil
	}
	r := &Record{Held: math.Ceil(w.held)}
	for i := range int64(slots) {
		if used := w.used[(w.slot-i+int64(slots))%int64(slots)]; used > rounding || len(r.Used) > 0 || i == 0 {
			r.Used = append(r.Used, used)
		}
	}
	for len(r.Used) > 0 && r.Used[len(r.Used)-1] <= rounding {
		r.Used = r.Used[:len(r.Used)-1]
	}
	return r
}

// recall restores the counts that a window had some time ago. It counts all grants of that time as
// used.
func (w *window) recall(r *Record, age time.Duration) {
	if w == nil || r == nil {
		return
	}
	w.slot += int64(slots) // so that all slots of the record are before it, and none is negative
	w.began = w.began.Add(-time.Duration(slots) * slotFor)
	for i, used := range r.Used {
		if back := int64(i) + int64(age/slotFor); back < int64(slots) {
			w.add(w.slot-back, used)
		}
	}
	w.use(r.Held)
	w.level = 0
}
