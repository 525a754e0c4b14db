package search

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"sync"

	"github.com/racflow/racflow/plugins/internal/store/segment"
)

// This file is the lexical leg of a search: the rows of highest BM25, exactly. It walks
// through the lists of all words of a query, one part after the other.

// LexicalLeg searches the words of a snapshot. It is safe for concurrent use.
type LexicalLeg struct {
	of          *segment.Snapshot
	base, slope float32 // a word's share is tf / (tf + base + slope·length)
}

// NewLexicalLeg returns the lexical leg of a snapshot, with the parameters of BM25.
func NewLexicalLeg(of *segment.Snapshot, k1, b float64) *LexicalLeg {
	return &LexicalLeg{of, float32(k1 * (1 - b)), float32(k1 * b * float64(of.Live) / float64(of.Words))}
}

// queryWord is a word of the query that some row has.
type queryWord struct {
	idf    float32
	weight float32 // idf, as often as the query has the word
	terms  []int32 // by part: the word's number there, or -1
}

// words looks up the words of a query, by falling idf: in every part they are added in this order.
func (l *LexicalLeg) words(query string) (known []queryWord) {
	words := l.of.Analyzer.Append(nil, query)
	slices.Sort(words)
	for len(words) > 0 {
		w, times := words[0], 1
		for times < len(words) && words[times] == w {
			times++
		}
		words = words[times:]
		h, df, terms := segment.Hash(w), 0, make([]int32, len(l.of.Parts))
		for i := range terms {
			if terms[i] = l.of.Parts[i].Terms.Find(h, w); terms[i] >= 0 {
				df += l.of.Parts[i].Df(terms[i])
			}
		}
		if df > 0 {
			idf := float32(math.Log1p((float64(l.of.Live) - float64(df) + 0.5) / (float64(df) + 0.5)))
			known = append(known, queryWord{idf, float32(times) * idf, terms})
		}
	}
	slices.SortStableFunc(known, func(a, b queryWord) int { return cmp.Compare(b.idf, a.idf) })
	return known
}

// sums are the scores of the rows of a part.
type sums struct {
	of      []float32 // by row
	touched []uint32  // rows with a sum, in no order
}

var sumsPool = sync.Pool{New: func() any { return new(sums) }}

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
func (l *LexicalLeg) Search(query string, among Selection, depth int, others []Scored) []Scored {
	words := l.words(query)
	if depth == 0 || len(words) == 0 {
		return nil
	}
	best := Top{Of: l.of, Depth: min(depth, l.of.Rows)}
	floor := float32(math.SmallestNonzeroFloat32) // most rows score 0
	s, _ := sumsPool.Get().(*sums)
	defer sumsPool.Put(s)
	for i := range l.of.Parts {
		p := &l.of.Parts[i]
		if more := p.Segment.Rows - len(s.of); more > 0 {
			s.of = append(s.of, make([]float32, more)...)
		}
		for _, w := range words {
			if w.terms[i] >= 0 {
				l.add(s, p, int(w.terms[i]), w.weight)
			}
		}
		for _, r := range s.touched {
			if sum := s.of[r]; sum >= floor && among.has(p, i, int32(r)) {
				best.Offer(Scored{Score: sum, Row: p.Base + int32(r)})
				floor = max(floor, best.Floor())
			}
		}
		end := sort.Search(len(others), func(j int) bool { return others[j].Row >= p.Base+int32(p.Segment.Rows) })
		for j := range others[:end] {
			others[j].Score = s.of[others[j].Row-p.Base]
		}
		others = others[end:]
		for _, r := range s.touched {
			s.of[r] = 0
		}
		s.touched = s.touched[:0]
	}
	return best.Sorted()
}

// add adds a word's share to the sums. Products are converted to float32, so that no
// compiler fuses them with the sum: a row's score is the same to the bit on every processor.
func (l *LexicalLeg) add(s *sums, p *segment.Part, term int, weight float32) {
	from, to := p.Terms.Extent(term, term+1)
	counts, lengths, n := p.Terms.Counts[from:to], p.Lengths, len(s.touched)
	touched := slices.Grow(s.touched, to-from+1)
	touched = touched[:cap(touched)]
	for i, r := range p.Terms.Rows[from:to] {
		if int(r) >= len(lengths) {
			continue // damaged
		}
		tf := float32(counts[i])
		if counts[i] == segment.ManyRows {
			tf = float32(p.Terms.Count(from + i))
		}
		sum := s.of[r]
		touched[n] = r
		if sum == 0 {
			n++ // whether it is the first word is as good as random: no branch is to depend on it
		}
		s.of[r] = sum + float32(weight*(tf/(tf+l.base+float32(l.slope*lengths[r]))))
	}
	s.touched = touched[:n]
}
