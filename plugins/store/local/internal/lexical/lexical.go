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
	best        topk.Top
	floor       float32
	certain     topk.Scores // that different rows reach
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
				l.score(p, &m.most[i], bits, others[:end])
			}
		}
		others = others[end:]
	}
	return l.best.Sorted()
}

// forget lets go of the snapshot and of what was found, but not of the buffers.
func (l *lexical) forget() {
	l.best, l.Leg, l.window = topk.Top{}, nil, window{}
	clear(l.lists[:cap(l.lists)])
	clear(l.words)
}

// prepare looks up the words of a query. It reports whether any row has one.
func (l *lexical) prepare(m *Leg, query string) bool {
	s := m.of
	l.Leg = m
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
