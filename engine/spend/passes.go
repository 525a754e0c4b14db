package spend

import (
	"errors"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/source"
)

// Journal is what keeps the results of a run; see run.Journal.
type Journal interface {
	Answered(source.Row) (outcome.Result, bool)
	Keep([]outcome.Result) error
}

// Counting returns the journal of a run over an input that can be read only once, of which
// nothing else is kept.
func (s *Spender) Counting() Journal { return counter{s} }

type counter struct{ *Spender }

func (counter) Answered(source.Row) (outcome.Result, bool) { return outcome.Result{}, false }

func (c counter) Keep(results []outcome.Result) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range results {
		line := results[i].Line
		bill := c.take(line)
		if bill == nil {
			continue
		}
		c.report.Wanted++
		if bill.Calls > 0 {
			c.charge(&results[i], bill.Calls, c.held[line])
		}
		c.reserved -= c.held[line]
		delete(c.held, line)
	}
	return nil
}

// take returns the bill of an item that is done; nil: no paid voter was wanted. The caller
// holds mu.
func (s *Spender) take(line int) *outcome.Bill {
	b := s.bills[line]
	delete(s.bills, line)
	return b
}

// charge counts what was asked about an item, and reports whether it got its answer. Nobody
// knows what was taken of an item that lacks a voter: most is set aside for it, so that its
// turn does not go to another one. The caller holds mu.
func (s *Spender) charge(r *outcome.Result, calls int, most float64) bool {
	var asked outcome.Bill
	for voter, usage := range r.Usages {
		asked.Cost += s.options.Cost(voter, usage)
	}
	whole := r.Failure == nil && len(r.Missing) == 0
	if whole {
		asked.Calls = calls
		s.report.Asked++
		r.Asked = &asked
	} else {
		s.aside += max(most-s.options.Limit.likely(asked), 0)
	}
	s.count(asked)
	return whole
}

// count adds to what was spent. The caller holds mu.
func (s *Spender) count(b outcome.Bill) {
	s.report.Calls += b.Calls
	s.report.Cost += b.Cost
}

// Survey begins the first pass, and returns its journal, which keeps what it is given in j.
func (s *Spender) Survey(j Journal) Journal {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase = surveying
	return survey{s, j}
}

type survey struct {
	*Spender
	journal Journal
}

// Answered returns what an earlier part of the run answered, and counts it.
func (s survey) Answered(row source.Row) (outcome.Result, bool) {
	r, ok := s.journal.Answered(row)
	if !ok || r.Unasked != nil && *r.Unasked == (outcome.Bill{}) { // it lacks more than the paid voters
		return r, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.Unasked != nil:
		s.bids = append(s.bids, bid{row.Line, *r.Unasked, true})
		s.report.Wanted++
	case r.Asked != nil:
		s.count(*r.Asked)
		s.report.Wanted++
		s.report.Asked++
	}
	return r, true
}

// Keep keeps first answers.
func (s survey) Keep(results []outcome.Result) error {
	s.mu.Lock()
	var kept []outcome.Result
	for _, r := range results {
		bill := s.take(r.Line)
		switch {
		case r.Failure != nil:
			s.failures[r.Line] = r.Failure
		case len(r.Missing) > 0:
			s.missing[r.Line] = r.Missing
			r.Missing, r.Unasked = nil, &outcome.Bill{} // a resumed run answers it again
		case bill != nil:
			bill.Gain = gain(r)
			r.Unasked = bill
			s.bids = append(s.bids, bid{r.Line, *bill, false})
			s.report.Wanted++
		}
		if r.Failure == nil {
			s.fresh++
		}
		kept = append(kept, r)
	}
	s.mu.Unlock()
	return s.journal.Keep(kept)
}

// Asking returns the journal of a round, which keeps what it is given in j.
func (s *Spender) Asking(j Journal) Journal { return asker{s, j} }

type asker struct {
	*Spender
	journal Journal
}

// Answered implements Journal: the items of a round are to be asked.
func (asker) Answered(source.Row) (outcome.Result, bool) { return outcome.Result{}, false }

// Keep keeps answers in place of the first ones. Where a paid voter failed or had to stop,
// what the others have is the answer, and a resumed run asks again.
func (s asker) Keep(results []outcome.Result) error {
	s.mu.Lock()
	var kept []outcome.Result
	for _, r := range results {
		at, ok := s.round[r.Line]
		if !ok {
			continue
		}
		delete(s.round, r.Line)
		b, calls := s.bids[at], 0
		if bill := s.take(r.Line); bill != nil {
			calls = bill.Calls
		}
		whole := s.charge(&r, calls, s.options.Limit.most(b.bill))
		switch {
		case r.Failure != nil:
			s.missing[r.Line] = []*outcome.Failure{r.Failure}
			continue
		case !whole:
			s.missing[r.Line] = r.Missing
			r.Missing, r.Unasked = nil, &b.bill
		case b.earlier:
			s.fresh++
		}
		kept = append(kept, r)
	}
	s.mu.Unlock()
	return s.journal.Keep(kept)
}

var errNotKept = errors.New("its answer holds a number that is not finite, which is no answer")

// Result returns what has become of a row, with what the stages made of it alone.
func (s *Spender) Result(j Journal, row source.Row) outcome.Result {
	s.mu.Lock()
	failure, missing := s.failures[row.Line], s.missing[row.Line]
	s.mu.Unlock()
	if failure != nil {
		return outcome.Result{Failure: failure}
	}
	r, ok := j.Answered(row)
	if !ok {
		return outcome.Result{Failure: &outcome.Failure{Err: errNotKept}}
	}
	r.Missing = missing
	return r
}

// Fresh is how many items this part of the run has answered.
func (s *Spender) Fresh() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fresh
}
