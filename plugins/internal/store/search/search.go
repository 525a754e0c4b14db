// Package search answers queries from a snapshot. It checks the queries, applies filters, runs both legs and turns
// rows into hits, each with the score of the other leg. sdk/support fuses the legs.
package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/plugins/internal/store/segment"
	"github.com/racflow/racflow/sdk"
)

// Searcher searches a snapshot by vectors, by words or by both. It is safe for
// concurrent use.
type Searcher struct {
	*segment.Snapshot
	dense   *denseLeg
	lexical *LexicalLeg
}

// NewSearcher returns the searcher of a snapshot. k1 and b are the parameters of BM25.
func NewSearcher(s *segment.Snapshot, k1, b float64) *Searcher {
	return &Searcher{Snapshot: s, dense: newDenseLeg(s, simd.Best()), lexical: newLexicalLeg(s, k1, b)}
}

// Search finds the best rows of each leg. If a query has a vector, lexical hits also have their cosine. If the
// lexical leg was asked, dense hits also have their BM25 score.
func (s *Searcher) Search(ctx context.Context, ask sdk.Search, queries []sdk.Query) ([]sdk.Hits, error) {
	dense, lexical, err := s.legs(ask.Mode)
	if err != nil {
		return nil, sdk.Invalid(err)
	}
	depth := max(ask.NumCandidates, 0)
	vectors, among, invalid := s.check(queries, dense)
	nearest := make([][]scored, len(queries))
	if dense && depth > 0 {
		if nearest, err = s.dense.Search(ctx, vectors, among, depth); err != nil {
			return nil, err
		}
	}
	hits := make([]sdk.Hits, len(queries))
	err = eachScored(ctx, len(queries), func(i int) {
		if invalid[i] != nil {
			return
		}
		var others []scored // the dense leg's rows, with lexical scores
		if lexical {
			others = byRow(nearest[i])
			matching := s.lexical.Search(queries[i].Text, among[i], depth, others)
			hits[i].Lexical = s.lexicalHits(matching, vectors[i], ask.Texts)
		}
		if dense {
			hits[i].Dense = s.denseHits(nearest[i], others, ask.Texts)
		}
	})
	if err == nil && len(invalid) > 0 {
		err = invalid
	}
	return hits, err
}

// check returns the vectors of the queries, the rows that their filters select, and the errors of invalid queries.
func (s *Searcher) check(queries []sdk.Query, dense bool) (vectors [][]float32, among []selection, invalid sdk.RowErrors) {
	vectors, among, invalid = make([][]float32, len(queries)), make([]selection, len(queries)), sdk.RowErrors{}
	selected := map[string]selection{} // the queries of a batch usually have the same filter
	for i, q := range queries {
		v, err := s.queryVector(q.Vector, dense)
		if err == nil && q.Filter != nil {
			err = q.Filter.Check()
		}
		if err != nil {
			invalid[i] = sdk.Invalid(err)
			continue
		}
		if vectors[i] = v; q.Filter == nil {
			continue
		}
		key := q.Filter.String()
		if _, ok := selected[key]; !ok {
			selected[key] = Selected(s.Snapshot, q.Filter)
		}
		among[i] = selected[key]
	}
	return vectors, among, invalid
}

// lexicalHits returns the hits of the lexical leg, with their cosines if the query has a vector.
func (s *Searcher) lexicalHits(matching []scored, vector []float32, texts bool) []sdk.Hit {
	hits := s.hits(matching, texts)
	for i, m := range matching {
		hits[i].Lexical, hits[i].Dense = m.Score, sdk.Unscored
		if len(vector) > 0 {
			hits[i].Dense = s.dense.cosine(vector, m.Row)
		}
	}
	return hits
}

// denseHits returns the hits of the dense leg. others holds BM25 scores by row; nil: the lexical leg was not asked.
func (s *Searcher) denseHits(nearest, others []scored, texts bool) []sdk.Hit {
	hits := s.hits(nearest, texts)
	for i, n := range nearest {
		hits[i].Dense, hits[i].Lexical = n.Score, sdk.Unscored
		if others != nil {
			at, _ := slices.BinarySearchFunc(others, n.Row, func(o scored, row int32) int { return cmp.Compare(o.Row, row) })
			hits[i].Lexical = others[at].Score
		}
	}
	return hits
}

// byRow returns the rows sorted by number, with scores of 0.
func byRow(found []scored) []scored {
	rows := make([]scored, len(found))
	for i, f := range found {
		rows[i].Row = f.Row
	}
	slices.SortFunc(rows, func(a, b scored) int { return cmp.Compare(a.Row, b.Row) })
	return rows
}

// hits returns a hit for each row. Without texts, a hit has its entry, which is id and label; all these strings are
// copied into one piece of memory.
func (s *Searcher) hits(found []scored, texts bool) []sdk.Hit {
	hits, entries := make([]sdk.Hit, len(found)), make([]sdk.Entry, len(found))
	size := 0
	for i, f := range found {
		p, r := s.At(f.Row)
		entries[i].ID = p.ID(r)
		if size += len(entries[i].ID); !texts {
			entries[i].Label = p.Label(r)
			size += len(entries[i].Label)
		}
	}
	copies := make([]byte, 0, size)
	for i := range entries {
		copies = append(append(copies, entries[i].ID...), entries[i].Label...)
	}
	all := string(copies)
	take := func(n int) (part string) {
		part, all = all[:n], all[n:]
		return part
	}
	for i := range hits {
		e := &entries[i]
		e.ID, e.Label = take(len(e.ID)), take(len(e.Label))
		if hits[i].ID = e.ID; !texts {
			hits[i].Entry = e
		}
	}
	return hits
}

// legs returns which legs a mode uses.
func (s *Searcher) legs(m sdk.Mode) (dense, lexical bool, err error) {
	dense, lexical = m != sdk.ModeLexical, m != sdk.ModeDense
	switch {
	case m != sdk.ModeHybrid && m != sdk.ModeDense && m != sdk.ModeLexical:
		err = fmt.Errorf("unknown search mode %q", m)
	case dense && s.Dimension == 0:
		err = fmt.Errorf("a %s search needs vectors and this collection has none: use mode %q", m, sdk.ModeLexical)
	case lexical && s.Analyzer == nil:
		err = fmt.Errorf("a %s search needs an analyzer and this collection was built without: use mode %q", m, sdk.ModeDense)
	}
	return dense, lexical, err
}

// queryVector returns a query's vector with norm 1, or nothing for a zero vector.
func (s *Searcher) queryVector(x []float32, needed bool) ([]float32, error) {
	switch {
	case len(x) == 0 && needed:
		return nil, errors.New("the query has no vector")
	case len(x) == 0 || len(x) == s.Dimension && segment.IsZero(x):
		return nil, nil
	case len(x) != s.Dimension:
		return nil, fmt.Errorf("the query's vector has %d dimensions and the collection's have %d", len(x), s.Dimension)
	}
	unit, ok := segment.Normalise(nil, x)
	if !ok {
		return nil, errors.New("the query's vector has NaN or an infinity in it")
	}
	return unit, nil
}
