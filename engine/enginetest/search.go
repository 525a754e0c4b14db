package enginetest

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/racflow/racflow/sdk"
)

func (m *memory) Search(ctx context.Context, name string, s sdk.Search, queries []sdk.Query) ([]sdk.Hits, error) {
	now, err := m.read(name)
	if err != nil {
		return nil, err
	}
	if s.Mode != sdk.ModeDense && now.schema.Analyzer == "" {
		return nil, sdk.Invalid(errors.New("the collection has no words"))
	}
	hits, failed := make([]sdk.Hits, len(queries)), sdk.RowErrors{}
	for i, q := range queries {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if s.Mode != sdk.ModeLexical {
			square := dot(q.Vector, q.Vector)
			if len(q.Vector) != now.schema.Dimension || math.IsNaN(square-square) {
				failed[i] = sdk.Invalid(errors.New("the vector cannot be searched for"))
				continue
			}
			hits[i].Dense = now.best(q, s.NumCandidates, func(e sdk.Entry) (sdk.Hit, bool) {
				norm := math.Sqrt(square * dot(e.Vector, e.Vector))
				cosine := dot(q.Vector, e.Vector) / max(norm, math.SmallestNonzeroFloat64)
				return sdk.Hit{ID: e.ID, Dense: float32(cosine), Lexical: sdk.Unscored}, square > 0
			}, func(h sdk.Hit) float32 { return h.Dense })
		}
		if s.Mode != sdk.ModeDense {
			hits[i].Lexical = now.best(q, s.NumCandidates, now.bm25(q.Text), func(h sdk.Hit) float32 { return h.Lexical })
		}
	}
	if len(failed) > 0 {
		return hits, failed
	}
	return hits, nil
}

// best returns the hits among the entries that the query's filter selects.
func (s state) best(q sdk.Query, depth int, hit func(sdk.Entry) (sdk.Hit, bool), score func(sdk.Hit) float32) []sdk.Hit {
	hits := []sdk.Hit{}
	for _, e := range s.entries {
		if h, ok := hit(e); ok && q.Filter.Match(e.ID, e.Label, e.Meta) {
			hits = append(hits, h)
		}
	}
	slices.SortFunc(hits, func(a, b sdk.Hit) int { return cmp.Or(cmp.Compare(score(b), score(a)), cmp.Compare(a.ID, b.ID)) })
	return hits[:min(depth, len(hits))]
}

// lexicon is what BM25 knows of a state.
type lexicon struct {
	words     map[string]map[string]int // of an entry: how often each
	lengths   map[string]int            // of an entry
	frequency map[string]int            // in how many entries a word is
	total     int                       // length
}

func lexiconOf(s state) *lexicon {
	l := &lexicon{map[string]map[string]int{}, map[string]int{}, map[string]int{}, 0}
	for id, e := range s.entries {
		l.words[id] = wordsOf(e.Context+"\n"+e.Text, s.schema.Analyzer)
		for word, times := range l.words[id] {
			l.frequency[word]++
			l.lengths[id] += times
		}
		l.total += l.lengths[id]
	}
	return l
}

// bm25 returns the score of entries for a text, by the formula of sdk.Hits.
func (s state) bm25(text string) func(sdk.Entry) (sdk.Hit, bool) {
	l, n := s.lexicon(), float64(len(s.entries))
	asked := wordsOf(text, s.schema.Analyzer)
	order := slices.Sorted(maps.Keys(asked)) // the same sum each time
	return func(e sdk.Entry) (sdk.Hit, bool) {
		h := sdk.Hit{ID: e.ID, Dense: sdk.Unscored}
		for _, word := range order {
			tf, df := float64(l.words[e.ID][word]), float64(l.frequency[word])
			if tf == 0 {
				continue
			}
			idf := math.Log1p((n - df + 0.5) / (df + 0.5))
			length := float64(l.lengths[e.ID]) * n / float64(max(l.total, 1))
			h.Lexical += float32(float64(asked[word]) * idf * tf / (tf + 1.2*(0.25+0.75*length)))
		}
		return h, h.Lexical > 0
	}
}

func dot(a, b []float32) float64 {
	sum := 0.0
	for i := range min(len(a), len(b)) {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}
