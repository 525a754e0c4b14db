package spend

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/racflow/racflow/engine/outcome"
)

// bid is an item that the paid voters could be asked about.
type bid struct {
	line    int
	bill    outcome.Bill
	earlier bool // an earlier part of the run gave it its first answer
}

// gain is what is expected of asking about an item that the free voters have answered.
func gain(r outcome.Result) float64 {
	if r.Answer == "" && r.Confidence == 0 {
		return 1
	}
	return 1 - cmp.Or(r.Confidence, r.Agreement)
}

// worth is the expected gain per forecast cost; what costs nothing comes first.
func (l Limit) worth(b outcome.Bill) float64 {
	if cost := l.likely(b); cost > 0 {
		return b.Gain / cost
	}
	return math.Inf(1)
}

// order puts the bids into the order in which they have their turn.
func (s *Spender) order() {
	slices.SortFunc(s.bids, func(a, b bid) int {
		return cmp.Or(cmp.Compare(s.options.Limit.worth(b.bill), s.options.Limit.worth(a.bill)), cmp.Compare(a.line, b.line))
	})
}

// unboundedRound is how many items of which nobody knows what they take at most are asked
// before it is known what they took.
const unboundedRound = 16

// Round begins the next round, and returns the lines of its items, ascending; none: there
// is no item left, or nothing to pay for one.
func (s *Spender) Round() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != asking {
		s.phase = asking
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
			break // until it is known what these took
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

// Abandon ends the second pass where no paid voter can be asked any more. Items that would
// have had their turn, as far as anybody knows, lack the voters that are gone.
func (s *Spender) Abandon(gone []*outcome.Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reserved := 0.0
	lack := func(b bid) {
		if likely := s.options.Limit.likely(b.bill); s.fits(reserved + likely) {
			reserved += likely
			s.missing[b.line] = gone
		}
	}
	for _, at := range slices.Sorted(maps.Values(s.round)) { // what a stopped run leaves
		lack(s.bids[at])
	}
	for ; s.next < len(s.bids); s.next++ {
		lack(s.bids[s.next])
	}
	s.round = nil
}
