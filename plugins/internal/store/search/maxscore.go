package search

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/racflow/racflow/plugins/internal/store/segment"
)

// raise lifts the floor to the score that as many rows as are wanted reach for
// certain: their sums over some of the words only grow with the others.
func (l *lexical) raise() {
	l.certain = Scores{Size: l.best.Depth, Heap: l.certain.Heap[:0]}
	for _, s := range l.best.Heap {
		l.certain.Offer(s.Score)
	}
	for _, at := range l.touched {
		if sum := l.sums[at]; sum > l.floor && alive(l.part, l.among, int32(l.low)+int32(at)) {
			l.certain.Offer(sum)
			l.floor = max(l.floor, l.certain.Floor())
		}
	}
}

// Most long queries have words that nearly every text has. These take most of the
// time and add least to the scores. MaxScore leaves them out where they cannot
// matter: Turtle and Flood, "Query evaluation: strategies and optimizations"
// (Information Processing & Management, 1995). The highest share that each word can
// have in a score tells which words are essential: a row among the best has at least
// one of them. Only their lists are walked through, rarest word first; the other words
// are looked up for the rows that may still come among the best. The result is that of
// walking through all lists, to the bit: the shares are added in the same order.
//
// The floor, which rows among the best must reach, is known early: before a long list
// is walked through, the sums over the rarer words tell what the best rows reach at
// least.

// ceilings keeps the highest share that a word can have, without its idf, for
// the words of a part that were asked for. It depends on the average length, and so
// on the snapshot.
type ceilings struct {
	made  sync.Once
	words []atomic.Uint32 // by word: bits of a float32; 0: not known yet
}

const (
	// shortList is the length below which a ceiling is not worth knowing.
	shortList = 64
	// longList is the length of a list from which it is worth finding out first
	// whether it is essential.
	longList = 2048
	// lookUp is about how many postings can be walked through in the time of
	// looking one row up in a list.
	lookUp = 16
	// roundOff covers what float32 sums of shares may be off by.
	roundOff = 1 + 1e-4
)

// ceiling returns the highest share of a word's list.
func (l *lexical) ceiling(p *segment.Part, c *ceilings, list *postings) float32 {
	if len(list.rows) < shortList {
		return list.weight
	}
	c.made.Do(func() { c.words = make([]atomic.Uint32, p.Terms.Len()) })
	if bits := c.words[list.term].Load(); bits != 0 {
		return list.weight * math.Float32frombits(bits)
	}
	highest := float32(0)
	for i, r := range list.rows {
		if int(r) < len(p.Lengths) { // else damaged
			highest = max(highest, l.share(list.tf(i), p.Lengths[r]))
		}
	}
	c.words[list.term].Store(math.Float32bits(highest))
	return list.weight * highest
}

// bound sets what the words from each one on can add at most. It reports whether
// that is known: where there are few postings, or many other rows whose scores would
// have to be looked up, it is not worth knowing.
func (l *lexical) bound(p *segment.Part, c *ceilings, others int) bool {
	total := 0
	for i := range l.lists {
		total += len(l.lists[i].rows)
	}
	known := len(l.lists) > 1 && total > longList && total > lookUp*others*len(l.lists)
	l.rest = slices.Grow(l.rest[:0], len(l.lists)+1)[:len(l.lists)+1]
	l.rest[len(l.lists)] = 0
	for i := len(l.lists) - 1; i >= 0; i-- {
		list := &l.lists[i]
		if l.rest[i] = float32(math.Inf(1)); known {
			l.rest[i] = l.rest[i+1] + l.ceiling(p, c, list)*roundOff
			list.ranks = list.terms.Ranks(list.term, p.Segment.Rows)
		}
	}
	return known
}

// postings is what is left of a word's list in a part.
type postings struct {
	terms    *segment.Terms
	term     int
	weight   float32       // its idf, as often as the query has the word
	first    int           // position of the list
	ranks    segment.Ranks // nil: look rows up in rows
	rows     []uint32
	counts   []uint8
	position int // of the first of rows
	here     int // of them in the window at hand
}

// tf is how often the word occurs in one of the rows that are left.
func (list *postings) tf(i int) float32 {
	if c := list.counts[i]; c != segment.ManyRows {
		return float32(c)
	}
	return float32(list.terms.Count(list.position + i))
}

func (list *postings) skip(n int) {
	list.rows, list.counts = list.rows[n:], list.counts[n:]
	list.position += n
}

// find returns where a row of the window stands among those that are left.
func (list *postings) find(row uint32) (i int, ok bool) {
	if list.ranks == nil {
		return slices.BinarySearch(list.rows[:list.here], row)
	}
	i, ok = list.ranks.Find(row)
	i -= list.position - list.first
	return i, ok && uint(i) < uint(list.here) // else damaged
}

// share is the part of a word in a row's score, without the idf. Here and where shares are
// added, products are converted to float32, so that no compiler fuses them with the sum: a
// row's score is the same to the bit however it is found, on every processor.
func (l *lexical) share(tf, length float32) float32 {
	return tf / (tf + l.base + float32(l.slope*length))
}

// gallop returns how many of the rising rows are below a row. Its steps double, so it
// is cheap where few of many are.
func gallop(rows []uint32, row uint32) int {
	step := 1
	for step < len(rows) && rows[step-1] < row {
		step *= 2
	}
	low, high := step/2, min(step, len(rows))
	for low < high { // slices.BinarySearch is slower here
		if middle := int(uint(low+high) / 2); rows[middle] < row {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// windowRows is the number of rows that are scored together: their sums stay in the
// second level of cache, and their positions fit 16 bits.
const windowRows = 1 << 16

// window is neighbouring rows of a part; positions are counted from the first.
type window struct {
	part    *segment.Part
	among   segment.RowSet // nil: all
	low     uint32         // the first row
	lengths []float32
}

// score offers the rows of a part that may come among the best, a window after the
// other.
func (l *lexical) score(p *segment.Part, c *ceilings, among segment.RowSet, others []Scored) {
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
		if counts[i] == segment.ManyRows {
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
