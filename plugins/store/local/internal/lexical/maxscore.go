package lexical

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/racflow/racflow/plugins/store/local/internal/row"
	"github.com/racflow/racflow/plugins/store/local/internal/snapshot"
	"github.com/racflow/racflow/plugins/store/local/internal/topk"
)

// Most long queries have words that nearly every text has. These take most of the
// time and add least to the scores. MaxScore leaves them out where they cannot
// matter: Turtle and Flood, "Query evaluation: strategies and optimizations"
// (Information Processing & Management, 1995). The highest share that each word can
// have in a score tells which words are essential: a row among the best has at least
// one of them. Only their lists are scanned; the other words are looked up for the
// rows that may still come among the best. The result is that of scanning all lists.

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
	// roundOff covers what float32 sums of shares may be off by.
	roundOff = 1 + 1e-4
	// lookUp is about how many postings can be walked through in the time of
	// looking one row up in a list.
	lookUp = 16
)

// ceiling returns the highest share of a word's list.
func (l *lexical) ceiling(p *snapshot.Part, c *ceilings, list *postings) float32 {
	if len(list.rows) < shortList {
		return list.idf
	}
	c.made.Do(func() { c.words = make([]atomic.Uint32, p.Terms.Len()) })
	if bits := c.words[list.term].Load(); bits != 0 {
		return list.idf * math.Float32frombits(bits)
	}
	highest := float32(0)
	for i, r := range list.rows {
		if int(r) < len(p.Lengths) { // else damaged
			highest = max(highest, l.share(list.tf(i), p.Lengths[r]))
		}
	}
	c.words[list.term].Store(math.Float32bits(highest))
	return list.idf * highest
}

// prunes reports whether leaving words out is worth it in a part. The scores of
// the others have to be looked up then.
func (l *lexical) prunes(others int) bool {
	total := 0
	for i := range l.lists {
		total += len(l.lists[i].rows)
	}
	return len(l.lists) > 1 && total > windowRows/4 && total > lookUp*others*len(l.lists)
}

// bound sets what the words from each one on can add at most.
func (l *lexical) bound(p *snapshot.Part, c *ceilings) {
	l.rest = slices.Grow(l.rest[:0], len(l.lists)+1)[:len(l.lists)+1]
	l.rest[len(l.lists)] = 0
	for i := len(l.lists) - 1; i >= 0; i-- {
		l.rest[i] = l.rest[i+1] + l.ceiling(p, c, &l.lists[i])*roundOff
	}
}

// essential returns how many words, from the first, a row must have one of.
func (l *lexical) essential() int {
	n := len(l.lists)
	for n > 0 && l.rest[n-1] < l.floor {
		n--
	}
	return n
}

// prune scores the rows of a part that may come among the best, a window after
// the other.
func (l *lexical) prune(p *snapshot.Part, c *ceilings, among row.Set, others []topk.Scored) {
	l.bound(p, c)
	n := p.Segment.Rows
	for low := 0; low < n; low += windowRows {
		lengths := p.Lengths[low:min(low+windowRows, n)]
		sums := l.sums[:len(lengths)]
		for i := range l.lists {
			l.lists[i].here = gallop(l.lists[i].rows, uint32(low+len(lengths)))
		}
		l.race(sums, lengths, uint32(low))
		for _, at := range l.running {
			if sum := sums[at]; sum >= l.floor {
				l.offer(p, among, int32(low)+int32(at), sum)
			}
		}
		clear(sums)
		for len(others) > 0 && int(others[0].Row-p.Base) < low+len(sums) {
			at := uint32(others[0].Row-p.Base) - uint32(low)
			for i := range l.lists {
				list := &l.lists[i]
				if position, ok := slices.BinarySearch(list.rows[:list.here], uint32(low)+at); ok {
					others[0].Score += list.idf * l.share(list.tf(position), lengths[at])
				}
			}
			others = others[1:]
		}
		for i := range l.lists {
			l.lists[i].skip(l.lists[i].here)
		}
	}
}

// race leaves in l.running the rows of the window that may come among the best,
// rising, with all of their sums.
func (l *lexical) race(sums, lengths []float32, low uint32) {
	needed, met := l.essential(), 0
	for i := range l.lists[:needed] {
		l.add(&l.lists[i], sums, lengths, low)
		met += l.lists[i].here
	}
	l.running = l.running[:0]
	if met == 0 {
		return
	}
	least := (l.floor - l.rest[needed]) / roundOff // above 0
	if met*sparseWindow > len(sums) {
		l.running = above(l.running, sums, least)
	} else {
		for i := range l.lists[:needed] {
			for _, r := range l.lists[i].rows[:l.lists[i].here] {
				if at := r - low; at < uint32(len(sums)) && sums[at] >= least {
					l.running = append(l.running, at)
				}
			}
		}
		slices.Sort(l.running)
		l.running = slices.Compact(l.running)
	}
	for i := needed; i < len(l.lists) && len(l.running) > 0; i++ {
		list := &l.lists[i]
		if len(l.running)*lookUp > list.here {
			l.add(list, sums, lengths, low)
		} else {
			l.join(list, sums, lengths, low)
		}
		least = (l.floor - l.rest[i+1]) / roundOff
		l.running = slices.DeleteFunc(l.running, func(at uint32) bool { return sums[at] < least })
	}
}

// above appends the positions of the sums that reach a number above 0. Floats that
// are not negative stand in the order of their bits, which are faster to compare.
func above(positions []uint32, sums []float32, least float32) []uint32 {
	bits, floor := unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(sums))), len(sums)), math.Float32bits(least)
	at := 0
	for ; at+8 <= len(bits); at += 8 {
		b := bits[at : at+8 : at+8]
		if max(b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]) < floor {
			continue
		}
		for i, x := range b {
			if x >= floor {
				positions = append(positions, uint32(at+i))
			}
		}
	}
	for ; at < len(bits); at++ {
		if bits[at] >= floor {
			positions = append(positions, uint32(at))
		}
	}
	return positions
}

// join adds a word's share to the sums of the rows that are still running.
func (l *lexical) join(list *postings, sums, lengths []float32, low uint32) {
	position := 0
	for _, at := range l.running {
		position += gallop(list.rows[position:list.here], low+at)
		if position == list.here {
			return
		}
		if list.rows[position] == low+at {
			sums[at] += list.idf * l.share(list.tf(position), lengths[at])
		}
	}
}
