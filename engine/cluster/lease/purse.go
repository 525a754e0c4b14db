package lease

import (
	"time"

	"github.com/racflow/racflow/engine/governor"
)

// purse is the budget with what each holder has of it. What the budget does not limit is 0 in all
// its amounts.
type purse struct {
	limit, before Amount // before: what was spent before
	holders       map[string]*account
	spent         string // why there is none left; empty: there is
}

// account is what a holder has of the budget.
type account struct {
	base   Amount // what it had spent before this part of the run
	rebase bool   // base is not known yet
	took   Amount // what its calls have taken, or may take that are under way
	most   Amount // that it may take
	gone   bool   // it does not report any more: all that it may take counts
	calls  int    // that were paid for

	inFlight int
	first    *Amount // what the first call needs that waits for the budget; nil: none does
	ample    Amount  // what it needs until it reports again
	pace     [2]pace
	hungry   time.Time // since when first waits; zero: it does not
}

func newPurse(l Limits) *purse {
	p := &purse{limit: l.Budget, holders: map[string]*account{}}
	p.before = p.limited(l.Spent)
	return p
}

// limited leaves of an amount what the budget limits.
func (p *purse) limited(a Amount) Amount {
	if p.limit.Cost == 0 {
		a.Cost = 0
	}
	if p.limit.Tokens == 0 {
		a.Tokens = 0
	}
	return a
}

// report takes over what a holder says.
func (p *purse) report(now time.Time, holder string, s governor.Spending) *account {
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

// has is what it was granted beyond what it took.
func (a *account) has() Amount { return minus(a.most, a.took) }

// within reports whether an amount is no more than another.
func (p *purse) within(a, of Amount) bool {
	return a.Cost <= of.Cost+rounding*p.limit.Cost && a.Tokens <= of.Tokens
}

// state is what a budget has left.
type state struct {
	unspent Amount // by anybody, or by calls under way
	free    Amount // nor granted
	live    int    // holders that report
	idle    bool   // none of them has a call under way
	scarce  bool   // one waits that gets enough only if others give back what they do not need
}

func (p *purse) state() state {
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

// grant decides up to what a holder may spend. While leases of an earlier keeper hold, nobody
// knows that nothing is left.
func (p *purse) grant(a *account, frozen bool) Amount {
	s := p.state()
	before, others := Amount{}, false // what those need that have waited for longer; others were granted something
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
		n := int64(2 * s.live) // so that little is granted to others when one finds the rest too small
		want = larger(smaller(a.ample, amount(room.Cost/float64(n), room.Tokens/n)), Amount{})
	}
	if hungry {
		if want = larger(want, *a.first); !p.within(*a.first, room) {
			want = Amount{}
		}
	}
	has := a.has()
	if p.within(want, has) { // what is beyond it is given back
		return plus(a.took, want)
	}
	get := plus(has, larger(smaller(minus(want, has), s.free), Amount{}))
	if hungry && !p.within(*a.first, get) {
		return a.most // a part would help nobody
	}
	a.most = plus(a.took, get)
	return a.most
}

func (p *purse) calls() (n int) {
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
