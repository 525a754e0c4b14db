package lexical

import (
	"slices"

	"github.com/racflow/racflow/plugins/store/local/internal/row"
	"github.com/racflow/racflow/plugins/store/local/internal/segment"
	"github.com/racflow/racflow/plugins/store/local/internal/snapshot"
	"github.com/racflow/racflow/plugins/store/local/internal/topk"
)

// windowRows is the number of rows that are scored together: their sums stay in the
// second level of cache, and their positions fit 16 bits.
const windowRows = 1 << 16

// window is neighbouring rows of a part; positions are counted from the first.
type window struct {
	part    *snapshot.Part
	among   row.Set // nil: all
	low     uint32  // the first row
	lengths []float32
}

// score offers the rows of a part that may come among the best, a window after the
// other.
func (l *lexical) score(p *snapshot.Part, c *ceilings, among row.Set, others []topk.Scored) {
	bounded := l.bound(p, c, len(others))
	for low := 0; low < p.Segment.Rows; low += l.rows {
		l.window = window{p, among, uint32(low), p.Lengths[low:min(low+l.rows, p.Segment.Rows)]}
		end := uint32(low + len(l.lengths))
		for i := range l.lists {
			l.lists[i].here = gallop(l.lists[i].rows, end)
		}
		l.winnow(l.addEssential(bounded))
		for _, at := range l.candidates {
			if sum := l.sums[at]; sum >= l.floor {
				l.offer(p, among, int32(l.low)+int32(at), sum)
			}
		}
		for len(others) > 0 && uint32(others[0].Row-p.Base) < end {
			r := uint32(others[0].Row - p.Base)
			if others[0].Score = l.sums[uint16(r-l.low)]; bounded {
				others[0].Score = l.total(r)
			}
			others = others[1:]
		}
		for _, at := range l.touched {
			l.sums[at] = 0
		}
		l.touched = l.touched[:0]
		for i := range l.lists {
			l.lists[i].skip(l.lists[i].here)
		}
	}
}

// addEssential adds the words of which a row among the best has at least one. It
// returns how many these are, from the first.
func (l *lexical) addEssential(bounded bool) (n int) {
	seen := 0 // rows that the floor was raised by
	for ; n < len(l.lists) && l.rest[n] >= l.floor; n++ {
		if bounded && l.lists[n].here >= longList && len(l.touched) > seen {
			seen = len(l.touched)
			if l.raise(); l.rest[n] < l.floor {
				break
			}
		}
		l.add(&l.lists[n])
	}
	return n
}

// add adds a word's share to the sums.
func (l *lexical) add(list *postings) {
	base, slope, weight, low, lengths := l.base, l.slope, list.weight, l.low, l.lengths
	counts := list.counts[:list.here]
	n := len(l.touched)
	touched := slices.Grow(l.touched, list.here+1)
	touched = touched[:cap(touched)]
	for i, r := range list.rows[:list.here] {
		at := r - low
		if at >= uint32(len(lengths)) {
			continue // damaged
		}
		tf := float32(counts[i])
		if counts[i] == segment.Many {
			tf = list.tf(i)
		}
		sum := l.sums[uint16(at)]
		touched[n] = uint16(at)
		if sum == 0 {
			n++
		}
		l.sums[uint16(at)] = sum + float32(weight*(tf/(tf+base+float32(slope*lengths[at]))))
	}
	l.touched = touched[:n]
}

// total is the score of a row.
func (l *lexical) total(r uint32) (sum float32) {
	for i := range l.lists {
		if at, ok := l.lists[i].find(r); ok {
			sum += float32(l.lists[i].weight * l.share(l.lists[i].tf(at), l.part.Lengths[r]))
		}
	}
	return sum
}
