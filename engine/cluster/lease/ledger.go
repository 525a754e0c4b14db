package lease

import (
	"time"
)

// Ledger is what the next keeper has to know.
type Ledger struct {
	Keeper  string             `json:"keeper"`
	Number  uint64             `json:"number"` // grows with every one that a keeper writes
	Limits  Limits             `json:"limits"`
	Holders map[string]Account `json:"holders,omitempty"` // that have a lease, and, of a budget, all that ever had; by their names
	Rates   []Rates            `json:"rates,omitempty"`
	Spent   string             `json:"spent,omitempty"` // why the budget is spent
}

// Account is what a holder has of the budget.
type Account struct {
	Most  Amount `json:"most,omitzero"` // that it may have spent and have reserved
	Base  Amount `json:"base,omitzero"` // of it, what an earlier part of the run spent
	Calls int    `json:"calls,omitempty"`
	Gone  bool   `json:"gone,omitempty"` // it has no lease any more
}

// Rates are what was used of a limit within the last minute.
type Rates struct {
	Block    string `json:"block,omitempty"`
	Endpoint string `json:"endpoint,omitempty"`
	rates
}

type rates struct {
	Requests *Record `json:"requests,omitempty"`
	Tokens   *Record `json:"tokens,omitempty"`
}

// ledger is the book as the next keeper needs it.
func (b *book) ledger(now time.Time) Ledger {
	l := Ledger{Keeper: b.keeper, Limits: b.limits, Holders: map[string]Account{}, Spent: b.purse.spent}
	for id, h := range b.holders {
		if gone := h.until.IsZero() && !b.former[id]; !gone || b.limits.Budget != (Amount{}) {
			l.Holders[id] = Account{Gone: gone}
		}
	}
	for id, a := range b.purse.holders {
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

// takeOver makes the book of the next keeper. age is how old the ledger is at least. limits are
// those of the run's definition: the ledger's are newer where a later part of the run has begun.
func takeOver(now time.Time, keeper string, l Ledger, limits Limits, age time.Duration, t terms) *book {
	if l.Keeper == "" { // nobody has kept it yet
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
		b.purse.holders[id] = a
	}
	for _, r := range l.Rates {
		b.records[name{r.Block, r.Endpoint}] = r.rates
	}
	if !again {
		b.purse.spent = l.Spent
	}
	return b
}
