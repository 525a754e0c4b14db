package search

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"sync"

	"github.com/racflow/racflow/plugins/internal/store/segment"
)

// This file is the lexical leg of a search: it finds the rows of highest BM25 score, exactly. It skips words that
// cannot matter (MaxScore). The result is the same as if every row was scored.

// LexicalLeg searches the words of a snapshot. It is safe for concurrent use.
type LexicalLeg struct {
	of          *segment.Snapshot
	base, slope float32  // a word's share is tf / (tf + base + slope·length)
	long        sync.Map // *longList, by the address of its first row
}

// newLexicalLeg returns the lexical leg of a snapshot, with the parameters of BM25.
func newLexicalLeg(of *segment.Snapshot, k1, b float64) *LexicalLeg {
	return &LexicalLeg{of: of, base: float32(k1 * (1 - b)), slope: float32(k1 * b * float64(of.Live) / float64(of.Words))}
}

// queryWord is a word of the query that occurs in some row.
type queryWord struct {
	idf    float32
	weight float32 // idf times the word's count in the query
	terms  []int32 // by part: the word's number there, or -1
}

// words looks up the words of a query and sorts them by falling idf. Every part adds their shares in this order.
func (l *LexicalLeg) words(query string) []queryWord {
	words := l.of.Analyzer.Append(nil, query)
	slices.Sort(words)
	known, numbers := make([]queryWord, 0, len(words)), make([]int32, len(words)*len(l.of.Parts))
	for len(words) > 0 {
		w, times := words[0], 1
		for times < len(words) && words[times] == w {
			times++
		}
		words = words[times:]
		h, df, terms := segment.Hash(w), 0, numbers[:len(l.of.Parts)]
		numbers = numbers[len(terms):]
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

// scoring is the state of one query. It processes one part after the other.
type scoring struct {
	*LexicalLeg
	part       *segment.Part
	among      segment.RowSet // nil: all
	few        bool           // few rows are selected: looking up all words for them is cheaper than reading the lists
	lists      []list         // of the query's words, rarest first
	rest       []float32      // by list: an upper bound of what this list and later ones can add; one more element, 0
	sums       []float32      // by row of the part
	touched    []uint32       // rows that may have a sum, unordered
	candidates []uint32       // rows of these that may be among the best
	best       top
	floor      float32 // least score of a row among the best
	certain    top     // lower bounds of the scores of different rows
}

var scorings = sync.Pool{New: func() any { return new(scoring) }}

// Search returns the depth selected rows of highest BM25 score, best first. It also sets the scores of the rows in
// others, which are in rising order:
//
//	Σ over the query's words  idf · tf / (tf + k1·(1 - b + b·length/average length))
//	idf = ln(1 + (N - df + 0.5) / (df + 0.5))
//
// BM25 is from Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009). This form,
// with an idf above 0 and without the constant factor k1 + 1, is Lucene's, with exact lengths as in "Lucene
// (accurate)" of Kamphuis, de Vries, Boytsov and Lin, "Which BM25 Do You Mean?" (ECIR 2020). A word that occurs twice
// in the query counts twice. N, df and the average refer to all live rows, selected or not.
func (l *LexicalLeg) Search(query string, among selection, depth int, others []scored) []scored {
	words := l.words(query)
	if depth == 0 || len(words) == 0 {
		return nil
	}
	s, _ := scorings.Get().(*scoring)
	s.LexicalLeg, s.best = l, top{Of: l.of, Depth: min(depth, l.of.Rows), Heap: make([]scored, 0, min(depth, l.of.Rows, 1<<10))}
	s.floor = math.SmallestNonzeroFloat32 // most rows score 0
	for i := range l.of.Parts {
		s.part, s.among = &l.of.Parts[i], nil
		if among != nil {
			s.among = among[i]
		}
		end := sort.Search(len(others), func(j int) bool { return others[j].Row >= s.part.Base+int32(s.part.Segment.Rows) })
		s.score(words, i, others[:end])
		others = others[end:]
	}
	found := s.best.sorted()
	clear(s.lists[:cap(s.lists)])
	s.LexicalLeg, s.part, s.among, s.best = nil, nil, nil, top{}
	scorings.Put(s)
	return found
}

// score adds the rows of a part that may be among the best, and sets the scores of others.
func (s *scoring) score(words []queryWord, part int, others []scored) {
	s.lookUp(words, part, len(others))
	if more := s.part.Segment.Rows - len(s.sums); more > 0 {
		s.sums = append(s.sums, make([]float32, more)...)
	}
	added := s.walk()
	s.keep(s.touched, s.least(added))
	for i := added; i < len(s.lists) && len(s.candidates) > 0; i++ {
		s.join(&s.lists[i])
		s.keep(s.candidates, s.least(i+1))
	}
	for _, r := range s.candidates {
		if sum := s.sums[r]; sum >= s.floor && s.alive(r) {
			s.best.offer(scored{Score: sum, Row: s.part.Base + int32(r)})
			s.floor = max(s.floor, s.best.floor())
		}
	}
	for i := range others {
		if r := uint32(others[i].Row - s.part.Base); added < len(s.lists) {
			others[i].Score = s.total(r)
		} else {
			others[i].Score = s.sums[r]
		}
	}
	for _, r := range s.touched {
		s.sums[r] = 0
	}
	s.touched = s.touched[:0]
}

// alive reports whether a row is selected and not removed.
func (s *scoring) alive(r uint32) bool {
	return (s.among == nil || s.among.Has(int32(r))) && !s.part.Dead.Has(int32(r))
}

// add adds a word's share to the sums.
func (s *scoring) add(list *list) {
	base, slope, weight, lengths, sums := s.base, s.slope, list.weight, s.part.Lengths, s.sums
	counts, n := list.counts, len(s.touched)
	touched := slices.Grow(s.touched, len(counts)+1)
	touched = touched[:cap(touched)]
	for i, r := range list.rows {
		if int(r) >= len(lengths) {
			continue // damaged
		}
		tf := float32(counts[i])
		if counts[i] == segment.ManyRows {
			tf = list.tf(i)
		}
		sum := sums[r]
		touched[n] = r
		if sum == 0 {
			n++ // whether it is the row's first word is nearly random, so avoid a branch
		}
		sums[r] = sum + float32(weight*(tf/(tf+base+float32(slope*lengths[r]))))
	}
	s.touched = touched[:n]
}
