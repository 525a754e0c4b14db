package search

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sort"
	"sync"

	"github.com/racflow/racflow/plugins/internal/store/segment"
)

// This file is the lexical leg of a search: the rows of highest BM25, exactly. Words
// that cannot matter are left out (MaxScore); the result is that of scoring every row.

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
			if tf = float32(list.counts[i]); list.counts[i] == segment.ManyRows {
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

// gather scores few selected rows. It gallops through them and through the lists.
func (l *lexical) gather(p *segment.Part, rows []uint32, others []Scored) {
	l.some = slices.Grow(l.some[:0], len(rows))[:len(rows)]
	clear(l.some)
	for i := range l.lists {
		list := &l.lists[i]
		for at := 0; at < len(rows) && len(list.rows) > 0; {
			if ahead := gallop(list.rows, rows[at]); ahead > 0 {
				list.skip(ahead)
				continue
			}
			if list.rows[0] > rows[at] {
				at += gallop(rows[at:], list.rows[0])
				continue
			}
			l.some[at] += float32(list.weight * l.share(list.tf(0), p.Lengths[rows[at]]))
			list.skip(1)
			at++
		}
	}
	for i, sum := range l.some {
		if sum >= l.floor {
			l.offer(p, nil, int32(rows[i]), sum)
		}
	}
	for i := range others {
		if at, ok := slices.BinarySearch(rows, uint32(others[i].Row-p.Base)); ok {
			others[i].Score = l.some[at]
		}
	}
}

// LexicalLeg searches the words of a snapshot. It is safe for concurrent use.
type LexicalLeg struct {
	of    *segment.Snapshot
	k1, b float64
	most  []ceilings // by part: the most that words can add
}

// NewLexicalLeg returns the lexical leg of a snapshot, with the parameters of BM25.
func NewLexicalLeg(of *segment.Snapshot, k1, b float64) *LexicalLeg {
	return &LexicalLeg{of: of, k1: k1, b: b, most: make([]ceilings, len(of.Parts))}
}

// lexical is one query at work on a snapshot.
type lexical struct {
	*LexicalLeg
	window
	base, slope float32
	words       []string
	known       []queryWord // of the query, by falling idf: in every part they are added in this order
	numbers     []int32     // by word and part: the word's number there, or -1
	lists       []postings
	rest        []float32 // by list: the most that it and those behind it can add
	rows        int       // of a window, at most windowRows
	sums        [windowRows]float32
	touched     []uint16 // positions with a sum, in no order
	candidates  []uint16 // those that may come among the best
	marks       [windowRows / 64]uint64
	some        []float32 // sums of few selected rows
	best        Top
	floor       float32
	certain     Scores // that different rows reach
}

// queryWord is a word of the query that some row has.
type queryWord struct {
	idf     float32
	weight  float32 // idf, as often as the query has the word
	numbers int     // where its numbers begin
}

var lexicals = sync.Pool{New: func() any { return &lexical{rows: windowRows} }}

// Search returns the depth rows of highest BM25 score among those selected,
// best first, and sets the scores of other rows, which rise:
//
//	Σ over the query's words  idf · tf / (tf + k1·(1 - b + b·length/average length))
//	idf = ln(1 + (N - df + 0.5) / (df + 0.5))
//
// BM25 is from Robertson and Zaragoza, "The Probabilistic Relevance Framework:
// BM25 and Beyond" (2009); this form of it, with an idf above 0 and without the
// constant factor k1 + 1, is Lucene's, with exact lengths as in "Lucene
// (accurate)" of Kamphuis, de Vries, Boytsov and Lin, "Which BM25 Do You Mean?"
// (ECIR 2020). A word that the query has twice counts twice. N, df and the
// average are those of all live rows, selected or not.
func (m *LexicalLeg) Search(query string, among *Selection, depth int, others []Scored) []Scored {
	s := m.of
	l, _ := lexicals.Get().(*lexical)
	defer lexicals.Put(l)
	defer l.forget()
	if depth == 0 || !l.prepare(m, query) {
		return nil
	}
	l.best = Top{Of: s, Depth: min(depth, s.Rows), Heap: make([]Scored, 0, min(depth, s.Rows, 1<<10))}
	l.floor = math.SmallestNonzeroFloat32 // most rows score 0
	for i := range s.Parts {
		p := &s.Parts[i]
		end := sort.Search(len(others), func(j int) bool { return others[j].Row >= p.Base+int32(p.Segment.Rows) })
		if l.lookUp(i) {
			if among != nil && among.Rows != nil {
				l.gather(p, among.Rows[i], others[:end])
			} else {
				var bits segment.RowSet
				if among != nil {
					bits = among.Bits[i]
				}
				l.score(p, &m.most[i], bits, others[:end])
			}
		}
		others = others[end:]
	}
	return l.best.Sorted()
}

// forget lets go of the snapshot and of what was found, but not of the buffers.
func (l *lexical) forget() {
	l.best, l.LexicalLeg, l.window = Top{}, nil, window{}
	clear(l.lists[:cap(l.lists)])
	clear(l.words)
}

// prepare looks up the words of a query. It reports whether any row has one.
func (l *lexical) prepare(m *LexicalLeg, query string) bool {
	s := m.of
	l.LexicalLeg = m
	l.words = s.Analyzer.Append(l.words[:0], query)
	slices.Sort(l.words)
	l.known, l.numbers = l.known[:0], l.numbers[:0]
	for rest := l.words; len(rest) > 0; {
		w, times := rest[0], 1
		for times < len(rest) && rest[times] == w {
			times++
		}
		rest = rest[times:]
		h, df := segment.Hash(w), 0
		for part := range s.Parts {
			term := s.Parts[part].Terms.Find(h, w)
			if term >= 0 {
				df += s.Parts[part].Df(term)
			}
			l.numbers = append(l.numbers, term)
		}
		if df == 0 {
			l.numbers = l.numbers[:len(l.numbers)-len(s.Parts)]
			continue
		}
		idf := float32(math.Log1p((float64(s.Live) - float64(df) + 0.5) / (float64(df) + 0.5)))
		l.known = append(l.known, queryWord{idf, float32(times) * idf, len(l.numbers) - len(s.Parts)})
	}
	slices.SortStableFunc(l.known, func(a, b queryWord) int { return cmp.Compare(b.idf, a.idf) })
	l.base = float32(m.k1 * (1 - m.b))
	l.slope = float32(m.k1 * m.b * float64(s.Live) / float64(s.Words))
	return len(l.known) > 0
}

// lookUp sets the lists of the query's words in a part.
func (l *lexical) lookUp(part int) bool {
	t := &l.of.Parts[part].Terms
	l.lists = l.lists[:0]
	for _, w := range l.known {
		term := l.numbers[w.numbers+part]
		if term < 0 {
			continue
		}
		if from, to := t.Extent(int(term), int(term)+1); from < to {
			l.lists = append(l.lists, postings{
				terms: t, term: int(term), weight: w.weight, first: from, rows: t.Rows[from:to], counts: t.Counts[from:to], position: from,
			})
		}
	}
	return len(l.lists) > 0
}

func (l *lexical) offer(p *segment.Part, among segment.RowSet, r int32, sum float32) {
	if !alive(p, among, r) {
		return
	}
	l.best.Offer(Scored{Score: sum, Row: p.Base + r})
	l.floor = max(l.floor, l.best.Floor())
}

// alive reports whether a row is there and selected.
func alive(p *segment.Part, among segment.RowSet, r int32) bool {
	return (among == nil || among.Has(r)) && !p.Dead.Has(r)
}
