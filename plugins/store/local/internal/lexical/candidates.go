package lexical

import (
	"math/bits"
	"slices"

	"github.com/racflow/racflow/plugins/store/local/internal/segment"
)

// winnow sets the candidates: the rows that may come among the best. It adds the
// words that are not essential to the sums of those alone.
func (l *lexical) winnow(essential int) {
	l.candidates = slices.Grow(l.candidates[:0], len(l.touched))[:len(l.touched)]
	least, n := l.least(essential), 0
	for _, at := range l.touched {
		l.candidates[n] = at
		if l.sums[at] >= least {
			n++
		}
	}
	l.candidates = l.candidates[:n]
	sorted := false
	for i := essential; i < len(l.lists) && len(l.candidates) > 0; i++ {
		list := &l.lists[i]
		if list.ranks == nil && !sorted {
			l.sort()
			sorted = true
		}
		l.join(list, l.least(i+1))
	}
}

// least is what the sum of a candidate reaches before the words from one on are added.
// It is above 0.
func (l *lexical) least(added int) float32 { return (l.floor - l.rest[added]) / roundOff }

// sort lets the candidates rise.
func (l *lexical) sort() {
	for _, at := range l.candidates {
		l.marks[at/64] |= 1 << (at % 64)
	}
	l.candidates = l.candidates[:0]
	for w := range l.marks[:(len(l.lengths)+63)/64] {
		for set := l.marks[w]; set != 0; set &= set - 1 {
			l.candidates = append(l.candidates, uint16(w*64+bits.TrailingZeros64(set)))
		}
		l.marks[w] = 0
	}
}

// join adds a word's share to the sums of the candidates and drops those that stay
// below least. Without ranks, they must rise.
func (l *lexical) join(list *postings, least float32) {
	if list.ranks != nil {
		l.joinRanked(list, least)
		return
	}
	n, i := 0, 0
	for _, at := range l.candidates {
		r, sum := l.low+uint32(at), l.sums[at]
		i += gallop(list.rows[i:list.here], r)
		if i < list.here && list.rows[i] == r {
			sum += float32(list.weight * l.share(list.tf(i), l.lengths[at]))
			l.sums[at] = sum
		}
		l.candidates[n] = at
		if sum >= least {
			n++
		}
	}
	l.candidates = l.candidates[:n]
}

// joinRanked is join by ranks. Whether a candidate has the word is as good as random,
// so it does not branch there: one without it gets 0 times the share of a neighbour.
func (l *lexical) joinRanked(list *postings, least float32) {
	base, slope, weight, low, lengths := l.base, l.slope, list.weight, l.low, l.lengths
	before, n := list.position-list.first, 0
	for _, at := range l.candidates {
		i, ok := list.ranks.Find(low + uint32(at))
		i -= before
		has := int32(0)
		if ok {
			has = 1
		}
		tf := float32(1)
		if uint(i) < uint(len(list.counts)) {
			if tf = float32(list.counts[i]); list.counts[i] == segment.Many {
				tf = list.tf(i)
			}
		}
		sum := l.sums[at] + float32(weight*float32(has)*(tf/(tf+base+float32(slope*lengths[at]))))
		l.sums[at] = sum
		l.candidates[n] = at
		if sum >= least {
			n++
		}
	}
	l.candidates = l.candidates[:n]
}
