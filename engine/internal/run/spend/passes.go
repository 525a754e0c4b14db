package spend

import (
	"cmp"
	"errors"
	"slices"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/source"
)

// bid is an item that the paid voters could be asked about.
type bid struct {
	line    int
	bill    outcome.Bill
	earlier bool // an earlier part of the run had the free answer
	asked   bool // and answered
}

// gain returns the expected gain of asking about an item that the free voters answered.
func gain(r outcome.Result) float64 {
	if r.Answer == "" && r.Confidence == 0 {
		return 1
	}
	return 1 - cmp.Or(r.Confidence, r.Agreement)
}

// order sorts the bids by their turn: the least sure answer first.
func (s *Spender) order() {
	slices.SortFunc(s.bids, func(a, b bid) int {
		return cmp.Or(cmp.Compare(b.bill.Gain, a.bill.Gain), cmp.Compare(a.line, b.line))
	})
}

// unboundedRound limits the items of unknown highest cost in a round, until their real cost is
// known.
const unboundedRound = 16

// Round begins the next round, and returns the lines of its items, ascending. It returns no lines
// if no item is left, or if the limit pays for no item.
func (s *Spender) Round() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.asking {
		s.asking = true
		s.order()
	}
	s.round = map[int]int{}
	reserved, unbounded := 0.0, 0
	for ; s.next < len(s.bids); s.next++ {
		b := s.bids[s.next]
		if s.options.Limit.unbounded(b.bill) {
			unbounded++
		}
		most := s.options.Limit.most(b.bill)
		if fits := s.fits(reserved + most); len(s.round) > 0 && (!fits || unbounded > unboundedRound) {
			break // until their real cost is known
		} else if fits {
			reserved += most
			s.round[b.line] = s.next
		}
	}
	var lines []int
	for line := range s.round {
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// Abandon ends the second pass when no paid voter can be asked any more. In the remaining items of
// the round, it marks the stopped voters (gone) as missing.
func (s *Spender) Abandon(gone []*outcome.Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for line := range s.round {
		s.missing[line] = gone
	}
	s.round = nil
}

// Journal keeps the results of a run; see run.Journal.
type Journal interface {
	Answered(source.Row) (outcome.Result, bool)
	Keep([]outcome.Result) error
}

// takeBill returns and forgets the bill of an item that is done; nil: no paid voter was wanted. The
// caller holds mu.
func (s *Spender) takeBill(line int) *outcome.Bill {
	b := s.bills[line]
	delete(s.bills, line)
	return b
}

// charge counts the calls about an item and their cost, and reports whether the item is fully answered.
// If a voter is missing, the item's real cost is unknown: charge sets aside the highest cost, so that no
// other item takes the item's turn. The caller holds mu.
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

// count adds to the amount spent. The caller holds mu.
func (s *Spender) count(b outcome.Bill) {
	s.report.Calls += b.Calls
	s.report.Cost += b.Cost
}

// Survey begins the first pass, and returns its journal, which keeps results in j.
func (s *Spender) Survey(j Journal) Journal {
	return survey{s, j}
}

type survey struct {
	*Spender
	journal Journal
}

// Answered returns the answer of an earlier part of the run, and counts it.
func (s survey) Answered(row source.Row) (outcome.Result, bool) {
	r, ok := s.journal.Answered(row)
	if !ok || r.Unasked != nil && *r.Unasked == (outcome.Bill{}) { // a free voter is missing, too
		return r, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.Unasked != nil:
		s.bids = append(s.bids, bid{line: row.Line, bill: *r.Unasked, earlier: true})
		s.report.Wanted++
	case r.Asked != nil:
		s.count(*r.Asked)
		s.report.Wanted++
		s.report.Asked++
	}
	return r, true
}

// Keep stores first answers.
func (s survey) Keep(results []outcome.Result) error {
	s.mu.Lock()
	var kept []outcome.Result
	for _, r := range results {
		bill := s.takeBill(r.Line)
		switch {
		case r.Failure != nil:
			s.failures[r.Line] = r.Failure
		case len(r.Missing) > 0:
			s.missing[r.Line] = r.Missing
			r.Missing, r.Unasked = nil, &outcome.Bill{} // a resumed run answers the item again
		case bill != nil:
			bill.Gain = gain(r)
			r.Unasked = bill
			s.bids = append(s.bids, bid{line: r.Line, bill: *bill})
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

// Asking returns the journal of a round, which keeps results in j.
func (s *Spender) Asking(j Journal) Journal { return asker{s, j} }

type asker struct {
	*Spender
	journal Journal
}

// Answered implements Journal. It returns no answers, because all items of a round are asked about.
func (asker) Answered(source.Row) (outcome.Result, bool) { return outcome.Result{}, false }

// Keep replaces first answers. If a paid voter failed or had to stop, the other voters give the
// answer, and a resumed run asks again.
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
		if bill := s.takeBill(r.Line); bill != nil {
			calls = bill.Calls
		}
		whole := s.charge(&r, calls, s.options.Limit.most(b.bill))
		s.bids[at].asked = whole
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

// Result returns the result of a row, with only the parts that stages made.
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

// Fresh returns how many items this part of the run answered.
func (s *Spender) Fresh() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fresh
}

// Preview is the forecast effect of a limit, from a first pass over some items.
type Preview struct {
	Items  int
	Calls  int
	Cost   float64
	Doubt  float64 // sum of the expected gains of these items: one minus the confidence
	Errors int     // number of these items that the free voters got wrong, by their labels
}

// Preview returns the forecast for an amount, after the first pass. wrong has the lines of items
// that the free voters got wrong.
func (s *Spender) Preview(amount float64, wrong map[int]bool) Preview {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order()
	var p Preview
	left := amount * (1 + rounding)
	for _, b := range s.bids {
		likely := s.options.Limit.likely(b.bill)
		if likely > left {
			continue
		}
		left -= likely
		p.Items++
		p.Calls += b.bill.Calls
		p.Cost += b.bill.Cost
		p.Doubt += b.bill.Gain
		if wrong[b.line] {
			p.Errors++
		}
	}
	return p
}
