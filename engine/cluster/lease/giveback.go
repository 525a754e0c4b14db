package lease

import (
	"time"

	"github.com/racflow/racflow/engine/governor"
)

// expire takes back what those were granted whose lease is over. What they may have used of a rate
// or of the budget counts as used.
func (b *book) expire(now time.Time) {
	if !now.Before(b.frozen) {
		b.former = nil
	}
	for id, h := range b.holders {
		if h.until.IsZero() || now.Before(h.until) {
			continue
		}
		h.until = time.Time{}
		for _, p := range b.pools {
			p.advance(now)
			p.lose(id)
		}
		if a := b.purse.holders[id]; a != nil {
			a.gone = true
		}
	}
}

// leave takes back what a holder gives back that calls nobody any more.
func (b *book) leave(r report) {
	b.holders[r.Holder].until = time.Time{}
	for _, p := range b.pools {
		p.lose(r.Holder)
	}
	if b.limits.Budget != (Amount{}) {
		a := b.purse.report(time.Time{}, r.Holder, r.Budget)
		a.most, a.gone = a.took, true
	}
	delete(b.former, r.Holder)
}

// permit names the endpoints of which the trial call is the holder's: one holder tries an endpoint,
// until its trial has ended or its lease is over.
func (b *book) permit(now time.Time, r report) []string {
	var all []string
	wants := map[string]governor.Trial{}
	for _, t := range r.Trials {
		wants[t.Endpoint] = t
		if of, ok := b.trials[t.Endpoint]; !ok || of.holder == r.Holder || !now.Before(of.until) {
			b.trials[t.Endpoint] = trial{r.Holder, now.Add(b.terms.lease)}
			all = append(all, t.Endpoint)
		}
	}
	for endpoint, of := range b.trials {
		if _, ok := wants[endpoint]; of.holder == r.Holder && !ok {
			delete(b.trials, endpoint)
		}
	}
	return all
}
