package lexical

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"sync"

	"github.com/racflow/racflow/plugins/store/local/internal/filter"
	"github.com/racflow/racflow/plugins/store/local/internal/row"
	"github.com/racflow/racflow/plugins/store/local/internal/segment"
	"github.com/racflow/racflow/plugins/store/local/internal/snapshot"
	"github.com/racflow/racflow/plugins/store/local/internal/topk"
)

const (
	// windowRows is the number of rows scored at a time; their sums stay in the cache.
	windowRows = 1 << 13
	// sparseWindow is the number of rows for each posting of a window from which
	// collect walks through the postings and not through the sums.
	sparseWindow = 8
)

// Leg searches the words of a snapshot. It is safe for concurrent use.
type Leg struct {
	of    *snapshot.Snapshot
	k1, b float64
	most  []ceilings // by part: the most that words can add
}

// NewLeg returns the lexical leg of a snapshot, with the parameters of BM25.
func NewLeg(of *snapshot.Snapshot, k1, b float64) *Leg {
	return &Leg{of: of, k1: k1, b: b, most: make([]ceilings, len(of.Parts))}
}

// lexical is one query at work on a snapshot.
type lexical struct {
	*Leg
	base, slope float32
	words       []string
	known       []queryWord // of the query, by falling idf: in every part they are added in this order
	numbers     []int32     // by word and part: the word's number there, or -1
	lists       []postings
	rest        []float32 // by list: the most that it and those behind it can add
	running     []uint32  // rows of the window that may come among the best
	sums        [windowRows]float32
	some        []float32 // sums of few selected rows
	best        topk.Top
	floor       float32
}

// queryWord is a word of the query that some row has.
type queryWord struct {
	idf     float32
	numbers int // where its numbers begin
}

// postings is what is left of a word's list in a part.
type postings struct {
	term     int
	idf      float32
	rows     []uint32
	counts   []uint8
	position int // of the first
	here     int // of them in the window at hand
	terms    *segment.Terms
}

var lexicals = sync.Pool{New: func() any { return new(lexical) }}

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
func (m *Leg) Search(query string, among *filter.Selection, depth int, others []topk.Scored) []topk.Scored {
	s := m.of
	l, _ := lexicals.Get().(*lexical)
	defer lexicals.Put(l)
	defer l.forget()
	if depth == 0 || !l.prepare(m, query) {
		return nil
	}
	l.best = topk.Top{Of: s, Depth: min(depth, s.Rows), Heap: make([]topk.Scored, 0, min(depth, s.Rows, 1<<10))}
	l.floor = math.SmallestNonzeroFloat32 // most rows score 0
	for i := range s.Parts {
		p := &s.Parts[i]
		end := sort.Search(len(others), func(j int) bool { return others[j].Row >= p.Base+int32(p.Segment.Rows) })
		if l.lookUp(i) {
			if among != nil && among.Rows != nil {
				l.gather(p, among.Rows[i], others[:end])
			} else {
				var bits row.Set
				if among != nil {
					bits = among.Bits[i]
				}
				if l.prunes(end) {
					l.prune(p, &m.most[i], bits, others[:end])
				} else {
					l.scan(p, bits, others[:end])
				}
			}
		}
		others = others[end:]
	}
	return l.best.Sorted()
}

// forget lets go of the snapshot and of what was found, but not of the buffers.
func (l *lexical) forget() {
	l.best, l.Leg = topk.Top{}, nil
	clear(l.lists[:cap(l.lists)])
	clear(l.words)
}

// prepare looks up the words of a query. It reports whether any row has one.
func (l *lexical) prepare(m *Leg, query string) bool {
	s := m.of
	l.Leg = m
	l.words = s.Analyzer.Append(l.words[:0], query)
	l.known, l.numbers = l.known[:0], l.numbers[:0]
	for _, w := range l.words {
		h, df := segment.Hash(w), 0
		for i := range s.Parts {
			term := s.Parts[i].Terms.Find(h, w)
			if term >= 0 {
				df += s.Parts[i].Df(term)
			}
			l.numbers = append(l.numbers, term)
		}
		if df == 0 {
			l.numbers = l.numbers[:len(l.numbers)-len(s.Parts)]
			continue
		}
		idf := float32(math.Log1p((float64(s.Live) - float64(df) + 0.5) / (float64(df) + 0.5)))
		l.known = append(l.known, queryWord{idf, len(l.numbers) - len(s.Parts)})
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
			l.lists = append(l.lists, postings{term: int(term), idf: w.idf, rows: t.Rows[from:to], counts: t.Counts[from:to], position: from, terms: t})
		}
	}
	return len(l.lists) > 0
}

// scan scores the rows of a part, window by window.
func (l *lexical) scan(p *snapshot.Part, among row.Set, others []topk.Scored) {
	n := p.Segment.Rows
	for low := 0; low < n; low += windowRows {
		lengths := p.Lengths[low:min(low+windowRows, n)]
		sums := l.sums[:len(lengths)]
		met := 0
		for i := range l.lists {
			list := &l.lists[i]
			list.here = gallop(list.rows, uint32(low+len(lengths)))
			met += list.here
			l.add(list, sums, lengths, uint32(low))
		}
		for len(others) > 0 && int(others[0].Row-p.Base) < low+len(sums) {
			others[0].Score = sums[int(others[0].Row-p.Base)-low]
			others = others[1:]
		}
		if met > 0 {
			l.collect(p, among, low, met, sums)
		}
		for i := range l.lists {
			l.lists[i].skip(l.lists[i].here)
		}
	}
}

// add adds a word's share to the sums of the window that starts with row low.
func (l *lexical) add(list *postings, sums, lengths []float32, low uint32) {
	base, slope := l.base, l.slope
	idf, counts := list.idf, list.counts[:list.here]
	lengths = lengths[:len(sums)]
	for i, r := range list.rows[:list.here] {
		at := r - low
		if at >= uint32(len(sums)) {
			continue // damaged
		}
		tf := float32(counts[i])
		if counts[i] == segment.Many {
			tf = list.tf(i)
		}
		sums[at] += idf * (tf / (tf + base + slope*lengths[at]))
	}
}

// tf is how often the word occurs in one of the rows that are left.
func (list *postings) tf(i int) float32 {
	if c := list.counts[i]; c != segment.Many {
		return float32(c)
	}
	return float32(list.terms.Count(list.position + i))
}

// share is the part of a word in a row's score, without the idf.
func (l *lexical) share(tf, length float32) float32 {
	return tf / (tf + l.base + l.slope*length)
}

func (list *postings) skip(n int) {
	list.rows, list.counts = list.rows[n:], list.counts[n:]
	list.position += n
}

// collect offers the rows of a window and sets their sums to 0 again.
func (l *lexical) collect(p *snapshot.Part, among row.Set, low, met int, sums []float32) {
	if met*sparseWindow > len(sums) {
		l.running = above(l.running[:0], sums, l.floor)
		for _, at := range l.running {
			if sum := sums[at]; sum >= l.floor {
				l.offer(p, among, int32(low)+int32(at), sum)
			}
		}
		clear(sums)
		return
	}
	for i := range l.lists {
		for _, r := range l.lists[i].rows[:l.lists[i].here] {
			at := r - uint32(low)
			if at >= uint32(len(sums)) {
				continue
			}
			if sum := sums[at]; sum >= l.floor {
				l.offer(p, among, int32(r), sum)
			}
			sums[at] = 0
		}
	}
}

func (l *lexical) offer(p *snapshot.Part, among row.Set, r int32, sum float32) {
	if !alive(p, among, r) {
		return
	}
	l.best.Offer(topk.Scored{Score: sum, Row: p.Base + r})
	l.floor = max(l.floor, l.best.Floor())
}

// alive reports whether a row is there and selected.
func alive(p *snapshot.Part, among row.Set, r int32) bool {
	return (among == nil || among.Has(r)) && !p.Dead.Has(r)
}

// gather scores few selected rows. It gallops through them and through the lists.
func (l *lexical) gather(p *snapshot.Part, rows []uint32, others []topk.Scored) {
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
			l.some[at] += list.idf * l.share(list.tf(0), p.Lengths[rows[at]])
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
