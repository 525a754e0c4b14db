package search

import (
	"math"
	"math/bits"
	"slices"

	"github.com/racflow/racflow/plugins/internal/store/segment"
)

// Most long queries have words that occur in nearly every text. These words take most of the time and add least to
// the scores. MaxScore skips them where they cannot matter: Turtle and Flood, "Query evaluation: strategies and
// optimizations" (Information Processing & Management, 1995). The highest possible share of each word in a score
// determines which words are essential: every row among the best has at least one of them. Only the lists of
// essential words are read, rarest word first. The other words are looked up for the rows that may still be among the
// best. The result is the same to the bit as if all lists were read, since the shares are added in the same order.
//
// The floor is the score that rows among the best must reach. It is known early: before a long list is read, the sums
// over the rarer words give a lower bound of the best scores.

const (
	// shortList is the length below which computing a list's ceiling is not worthwhile.
	shortList = 64
	// manyPostings is the number of postings from which on reading them takes longer than finding out whether they
	// are essential.
	manyPostings = 2048
	// lookUp is about how many postings can be read in the time of one lookup in a list.
	lookUp = 4
	// sparseList is the number of rows of a part per row of a list from which on the list has no ranks, which would
	// take more memory than the list itself.
	sparseList = 16
	// roundOff covers the rounding error of float32 sums of shares.
	roundOff = 1 + 1e-4
)

// list is a word's list in a part.
type list struct {
	terms  *segment.Terms
	first  int     // position of the list
	weight float32 // its idf times the word's count in the query
	rows   []uint32
	counts []uint8
	ranks  ranks // nil: search in rows
}

// tf is how often the word occurs in one of the rows.
func (l *list) tf(i int) float32 { return float32(l.terms.Count(l.first + i)) }

// find returns the position of a row in the list.
func (l *list) find(row uint32) (i int, ok bool) {
	if l.ranks == nil {
		return slices.BinarySearch(l.rows, row)
	}
	i, ok = l.ranks.find(row)
	return i, ok && i < len(l.rows) // else damaged
}

// lookUp sets the lists of the words in a part, and upper bounds of their shares. The bounds are not worthwhile if
// there are few postings, or many other rows to score: then all lists are read.
func (s *scoring) lookUp(words []queryWord, part, others int) {
	t, total := &s.part.Terms, 0
	s.lists = s.lists[:0]
	for _, w := range words {
		if term := int(w.terms[part]); term >= 0 {
			from, to := t.Extent(term, term+1)
			s.lists = append(s.lists, list{terms: t, first: from, weight: w.weight, rows: t.Rows[from:to], counts: t.Counts[from:to]})
			total += to - from
		}
	}
	s.few = s.among != nil && total > lookUp*s.among.Count()*len(s.lists)
	known := s.few || len(s.lists) > 1 && total > manyPostings && total > lookUp*others*len(s.lists)
	s.rest = slices.Grow(s.rest[:0], len(s.lists)+1)[:len(s.lists)+1]
	s.rest[len(s.lists)] = 0
	for i := len(s.lists) - 1; i >= 0; i-- {
		if s.rest[i] = float32(math.Inf(1)); known {
			s.rest[i] = s.rest[i+1] + s.ceiling(&s.lists[i])*roundOff
		}
	}
}

// longList caches what was computed about a long list.
type longList struct {
	ranks   ranks
	highest float32 // highest share of the word in a row, without the idf
}

// ceiling returns an upper bound of a word's share in a score. It sets the list's ranks.
func (s *scoring) ceiling(l *list) float32 {
	if len(l.rows) < shortList {
		return l.weight
	}
	key := &l.rows[0]
	kept, ok := s.long.Load(key)
	if !ok {
		made := &longList{}
		if len(l.rows)*sparseList >= s.part.Segment.Rows {
			made.ranks = newRanks(l.rows, s.part.Segment.Rows)
		}
		for i, r := range l.rows {
			if int(r) < len(s.part.Lengths) { // else damaged
				made.highest = max(made.highest, s.share(l.tf(i), s.part.Lengths[r]))
			}
		}
		kept, _ = s.long.LoadOrStore(key, made)
	}
	long, _ := kept.(*longList)
	l.ranks = long.ranks
	return l.weight * long.highest
}

// share returns a word's part in a row's score, without the idf. Here and where shares are added, products are
// converted to float32, so that no compiler fuses them with the sum. So a row's score is the same to the bit however it
// is computed, on every processor.
func (l *LexicalLeg) share(tf, length float32) float32 {
	return tf / (tf + l.base + float32(l.slope*length))
}

// walk adds the shares of the essential words: every row among the best has at least one of them. It returns their
// number; they are the first ones. If few rows are selected, it adds none.
func (s *scoring) walk() (n int) {
	if s.few {
		s.among.Each(func(r int32) { s.touched = append(s.touched, uint32(r)) })
		return 0
	}
	seen := 0 // rows that the floor was computed from
	for ; n < len(s.lists) && s.rest[n] >= s.floor; n++ {
		if len(s.lists[n].rows) >= manyPostings && len(s.touched) > seen {
			seen = len(s.touched)
			if s.raise(); s.rest[n] < s.floor {
				break
			}
		}
		s.add(&s.lists[n])
	}
	return n
}

// raise lifts the floor to the score that enough rows reach for certain: their sums over some of the words can only
// grow with the other words.
func (s *scoring) raise() {
	s.certain = top{Depth: s.best.Depth, Heap: append(s.certain.Heap[:0], s.best.Heap...)}
	for _, r := range s.touched {
		if sum := s.sums[r]; sum > s.floor && s.alive(r) {
			s.certain.offer(scored{Score: sum})
			s.floor = max(s.floor, s.certain.floor())
		}
	}
}

// least is the least sum of a candidate before the words from added on are added.
func (s *scoring) least(added int) float32 { return (s.floor - s.rest[added]) / roundOff }

// keep makes those rows candidates whose sums reach least.
func (s *scoring) keep(rows []uint32, least float32) {
	kept, n := slices.Grow(s.candidates[:0], len(rows))[:len(rows)], 0
	for _, r := range rows {
		kept[n] = r
		if s.sums[r] >= least {
			n++
		}
	}
	s.candidates = kept[:n]
}

// join adds a word's share to the sums of the candidates.
func (s *scoring) join(l *list) {
	if l.ranks != nil {
		s.joinRanked(l)
		return
	}
	at, before := 0, uint32(0)
	for _, r := range s.candidates {
		if r < before {
			at = 0 // rows rise only if they are from one list, or selected
		}
		before = r
		if at += gallop(l.rows[at:], r); at < len(l.rows) && l.rows[at] == r {
			s.sums[r] += float32(l.weight * s.share(l.tf(at), s.part.Lengths[r]))
		}
	}
}

// gallop returns how many of the rising rows are below a row. Its steps double, so it is cheap if the result is
// small.
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

// joinRanked is join by ranks. Whether a candidate has the word is nearly random, so the code does not branch on it:
// a candidate without the word gets 0 times the share of a neighbour.
func (s *scoring) joinRanked(l *list) {
	base, slope, weight, lengths, sums, counts := s.base, s.slope, l.weight, s.part.Lengths, s.sums, l.counts
	for _, r := range s.candidates {
		i, ok := l.ranks.find(r)
		has := int32(0)
		if ok {
			has = 1
		}
		tf := float32(1)
		if uint(i) < uint(len(counts)) {
			if tf = float32(counts[i]); counts[i] == segment.ManyRows {
				tf = l.tf(i)
			}
		}
		sums[r] += float32(weight * float32(has) * (tf / (tf + base + float32(slope*lengths[r]))))
	}
}

// total returns the score of a row.
func (s *scoring) total(r uint32) (sum float32) {
	for i := range s.lists {
		if at, ok := s.lists[i].find(r); ok {
			sum += float32(s.lists[i].weight * s.share(s.lists[i].tf(at), s.part.Lengths[r]))
		}
	}
	return sum
}

// ranks finds a row in a list in constant time. It is a bitmap of the list's rows, with the number of rows before
// each word of the bitmap (Jacobson, "Space-efficient static trees and graphs", FOCS 1989).
type ranks []rankedWord

type rankedWord struct {
	rows   uint64
	before uint32
}

func newRanks(list []uint32, rows int) ranks {
	r := make(ranks, (rows+63)/64)
	for _, row := range list {
		if int(row) < rows { // else damaged
			r[row/64].rows |= 1 << (row % 64)
		}
	}
	before := 0
	for i := range r {
		r[i].before = uint32(before)
		before += bits.OnesCount64(r[i].rows)
	}
	return r
}

// find returns the position of a row in the list.
func (r ranks) find(row uint32) (position int, ok bool) {
	w := &r[row/64]
	bit := uint64(1) << (row % 64)
	return int(w.before) + bits.OnesCount64(w.rows&(bit-1)), w.rows&bit != 0
}
