package lease

import (
	"cmp"
	"slices"
	"time"

	"github.com/racflow/racflow/engine/internal/process/governor"
)

// terms are the durations of leases and claims.
type terms struct {
	lease time.Duration // of a grant, from when its report was sent
	every time.Duration // between reports
	claim time.Duration // of the keeper's claim; renewed three times as often
}

func usual() terms {
	return terms{lease: 10 * time.Second, every: 200 * time.Millisecond, claim: 6 * time.Second}
}

// asking is how long a holder waits for the answer to a report.
func (t terms) asking() time.Duration { return t.lease / 10 }

// accounts record the grants of all holders and decide new ones. They use neither clock nor servers.
type accounts struct {
	terms     terms
	keeper    string // ID of the keeper
	limits    Limits
	pools     map[name]*pool
	allowance *allowance
	holders   map[string]*holder
	trials    map[string]trial // by endpoint
	records   map[name]rates   // of an earlier keeper, for limits that no holder has used yet
	began     time.Time        // when this keeper took over
	age       time.Duration    // of the records at that time

	frozen time.Time       // until then leases of an earlier keeper may last
	former map[string]bool // the earlier keeper's holders that have not reported yet
}

// holder is a process that reports.
type holder struct {
	number uint64    // of its last report
	until  time.Time // end of its lease
}

// trial records which holder tries an endpoint that is down.
type trial struct {
	holder string
	until  time.Time
}

func newBook(keeper string, limits Limits, t terms) *accounts {
	return &accounts{
		terms: t, keeper: keeper, limits: limits, pools: map[name]*pool{}, allowance: newAllowance(limits),
		holders: map[string]*holder{}, trials: map[string]trial{}, records: map[name]rates{},
	}
}

// report decides what a reporting holder gets. write: the present ledger must be written before the
// answer goes out. A nil answer: the report is older than one already received.
func (b *accounts) report(now time.Time, r report) (a *answer, write bool) {
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
	write = !known // the next keeper has to know of this lease
	h.until = now.Add(b.terms.lease)
	delete(b.former, r.Holder)
	frozen := len(b.former) > 0 // unknown leases of an earlier keeper may last
	a = &answer{Keeper: b.keeper, Lease: b.terms.lease, Every: max(b.terms.every, time.Duration(len(b.holders))*500*time.Microsecond)}
	for _, n := range r.Limiters {
		if !known { // its lease had ended before the report came
			n.Share, n.Requests.Most, n.Tokens.Most = 0, n.Requests.Used, n.Tokens.Used
		}
		p := b.pool(now, name{n.Block, n.Endpoint})
		given := p.grant(now, p.report(now, r.Holder, n), n, frozen)
		write = write || given.Requests > n.Requests.Most+rounding || given.Tokens > n.Tokens.Most+rounding
		a.Limiters = append(a.Limiters, given)
	}
	if b.limits.Budget != (Amount{}) {
		a.Budget = b.allowance.grant(b.allowance.report(now, r.Holder, r.Budget), frozen)
		a.Spent = b.allowance.spent
		write = write || a.Budget.Cost > r.Budget.Most.Cost || a.Budget.Tokens > r.Budget.Most.Tokens
	}
	a.Trials = b.permit(now, r)
	return a, write
}

// pool returns the pool of a limiter.
func (b *accounts) pool(now time.Time, n name) *pool {
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

// Ledger is what the next keeper has to know.
type Ledger struct {
	Keeper  string             `json:"keeper"`
	Number  uint64             `json:"number"` // grows with each write of a keeper
	Limits  Limits             `json:"limits"`
	Holders map[string]Account `json:"holders,omitempty"` // by name: those with a lease and, if there is a budget, all that ever had one
	Rates   []Rates            `json:"rates,omitempty"`
	Spent   string             `json:"spent,omitempty"` // why the budget is used up
}

// Account is a holder's part of the budget.
type Account struct {
	Most  Amount `json:"most,omitzero"` // granted maximum of spent plus reserved
	Base  Amount `json:"base,omitzero"` // the part of Most that an earlier part of the run spent
	Calls int    `json:"calls,omitempty"`
	Gone  bool   `json:"gone,omitempty"` // its lease has ended
}

// Rates are the uses of a limit within the last minute.
type Rates struct {
	Block    string `json:"block,omitempty"`
	Endpoint string `json:"endpoint,omitempty"`
	rates
}

type rates struct {
	Requests *Record `json:"requests,omitempty"`
	Tokens   *Record `json:"tokens,omitempty"`
}

// ledger returns the accounts in the form for the next keeper.
func (b *accounts) ledger(now time.Time) Ledger {
	l := Ledger{Keeper: b.keeper, Limits: b.limits, Holders: map[string]Account{}, Spent: b.allowance.spent}
	for id, h := range b.holders {
		if gone := h.until.IsZero() && !b.former[id]; !gone || b.limits.Budget != (Amount{}) {
			l.Holders[id] = Account{Gone: gone}
		}
	}
	for id, a := range b.allowance.holders {
		account := l.Holders[id]
		account.Most, account.Base, account.Calls = a.most, a.base, a.calls
		if a.rebase {
			account.Most, account.Base = Amount{}, Amount{}
		}
		l.Holders[id] = account
	}
	for n, p := range b.pools {
		if p.requests != nil || p.tokens != nil {
			p.advance(now)
			l.Rates = append(l.Rates, Rates{n.block, n.endpoint, rates{p.requests.record(), p.tokens.record()}})
		}
	}
	for n, r := range b.records {
		if b.pools[n] == nil {
			l.Rates = append(l.Rates, Rates{n.block, n.endpoint, r})
		}
	}
	return l
}

// takeOver creates the accounts of the next keeper. age is the minimum age of the ledger. limits are those of
// the run's definition; the ledger's limits are newer if a later part of the run has begun.
func takeOver(now time.Time, keeper string, l Ledger, limits Limits, age time.Duration, t terms) *accounts {
	if l.Keeper == "" { // there was no keeper yet
		return newBook(keeper, limits, t)
	}
	again := max(limits.Part, 1) > max(l.Limits.Part, 1)
	if !again {
		limits = l.Limits
	}
	b := newBook(keeper, limits, t)
	b.frozen, b.former = now.Add(t.lease), map[string]bool{}
	b.began, b.age = now, max(age, 0)
	for id, of := range l.Holders {
		b.holders[id] = &holder{}
		if !of.Gone {
			b.former[id] = true
		}
		if limits.Budget == (Amount{}) {
			continue
		}
		a := &account{most: of.Most, took: of.Most, base: of.Base, calls: of.Calls, gone: true}
		if again {
			a = &account{rebase: true, gone: true}
		}
		b.allowance.holders[id] = a
	}
	for _, r := range l.Rates {
		b.records[name{r.Block, r.Endpoint}] = r.rates
	}
	if !again {
		b.allowance.spent = l.Spent
	}
	return b
}

// Amount is money, in the currency of the file's prices, and tokens, input plus output.
type Amount = governor.Amount

// report is a holder's message to the keeper.
type report struct {
	Holder  string `json:"holder"` // unique
	Leaving bool   `json:"leaving,omitempty"`
	governor.Demand
}

// answer is a grant to a holder. It counts from the moment at which the report was sent, so that
// the holder's lease ends before the keeper's does.
type answer struct {
	Keeper   string           `json:"keeper"`
	Lease    time.Duration    `json:"lease"`
	Every    time.Duration    `json:"every"` // how often to report
	Limiters []governor.Given `json:"limiters,omitempty"`
	Budget   Amount           `json:"budget,omitzero"`
	Spent    string           `json:"spent,omitempty"`
	Trials   []string         `json:"trials,omitempty"`
}

// name identifies a limiter.
type name struct{ block, endpoint string }

// turn is how long a holder keeps one of the indivisible calls if more holders wait than there are
// such calls.
const turn = 2 * time.Second

// share is a holder's part of the concurrent calls.
type share struct {
	holder string
	held   int // maximum calls that it may have under way
	want   int // maximum under way plus waiting in the last half second
	wanted [2]struct {
		at   time.Time
		most int
	}
	target int

	extra  bool      // it has one of the calls left after even division
	since  time.Time // when it got that call
	rested time.Time // when it last had one
}

// see records the recent maximum of a holder's need, so that shares do not follow every batch.
func (s *share) see(now time.Time, peak int) {
	if now.Sub(s.wanted[0].at) >= 300*time.Millisecond {
		s.wanted[1] = s.wanted[0]
		s.wanted[0].at, s.wanted[0].most = now, 0
	}
	s.wanted[0].most = max(s.wanted[0].most, peak)
	s.want = s.wanted[0].most
	if now.Sub(s.wanted[1].at) < time.Second {
		s.want = max(s.want, s.wanted[1].most)
	}
}

// divide sets the targets: each holder gets what it wants, or as much as every other that wants
// more. It divides unwanted calls evenly, so that new calls need not wait for a grant.
func divide(now time.Time, limit int, all []*share) {
	wants := 0
	for _, s := range all {
		wants += s.want
	}
	if len(all) == 0 {
		return
	}
	if wants <= limit {
		spare := limit - wants
		for i, s := range all {
			s.target = s.want + spare/len(all)
			if i < spare%len(all) {
				s.target++
			}
			s.extra = false
		}
		return
	}
	byWant := slices.Clone(all)
	slices.SortStableFunc(byWant, func(a, b *share) int { return cmp.Compare(a.want, b.want) })
	left, level := limit, 0
	for i, s := range byWant {
		level = left / (len(byWant) - i)
		if s.want > level {
			byWant = byWant[i:]
			break
		}
		s.target, s.extra = s.want, false
		left -= s.want
	}
	rest := left - level*len(byWant)
	slices.SortStableFunc(byWant, func(a, b *share) int { return cmp.Compare(a.rank(now, level), b.rank(now, level)) })
	for i, s := range byWant {
		s.target = level
		had := s.extra
		if s.extra = i < rest; s.extra {
			s.target++
			s.rested = now
			if !had {
				s.since = now
			}
		}
	}
}

// rank orders holders for the calls left after even division: first those that have one (for a
// turn, if others have no call), then those that have had none for longest.
func (s *share) rank(now time.Time, level int) int64 {
	if s.extra && (level > 0 || now.Sub(s.since) < turn) {
		return -1 << 62
	}
	if s.rested.IsZero() {
		return -1 << 61
	}
	return s.rested.UnixNano()
}
