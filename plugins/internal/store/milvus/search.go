package milvus

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"

	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
)

// This file searches.
//
// A server's order is only nearly right. The words of a row are weighed with the
// average length when it was put, system rows take the place of others, and filters are
// translated to something weaker where engines disagree. So a leg reads more rows than wanted,
// scores them again with today's statistics, and knows by a bound on the error whether that was
// enough; else it reads more, and at last every row. Only among entries that tie with the last
// one of a list of more than a hundred the server may choose.
//
// A hybrid search takes one call for each leg, at once. The cosines of what only the words
// found take a third one, unless so few are wanted that their vectors come with them. To ask
// for those cosines alone that the fusion may need was not faster: a call takes 2.3 ms for 60
// rows and 3.1 for 230 (Milvus Lite, 20,000 rows), and nearly all may be needed.
//
// The fusion is the one of package support: the scores of a server's own hybrid search
// differ between engines.

// leg is one leg of a search: the dense one unless it is lexical.
type leg struct {
	*known
	wanted  int  // hits of each query
	cosines bool // also of what only the words found
	formula table.Formula
	bm25    bool // hits get a BM25 score
	lexical bool
}

// Start implements table.Leg: some more rows than wanted, because system rows and ties fall
// away, and more again where the server's order is less exact.
func (l leg) Start() int {
	n := l.wanted + 16 + l.record.Parts + int(8*float32(l.wanted)*(l.errorBound()-1))
	return min(n, table.MaxRows)
}

// Find implements table.Leg.
func (l leg) Find(ctx context.Context, queries []*table.Query, limit int) ([][]table.Hit, []bool, error) {
	fields, field := table.FieldsScan, table.FieldVector
	// A filter that the server cannot check gives the same expression as none.
	if slices.ContainsFunc(queries, func(q *table.Query) bool { return q.Filter != nil }) {
		fields = append(slices.Clone(fields), table.FieldMeta)
	}
	if l.lexical {
		field = table.FieldWords
	}
	if l.vectorsToo(limit) {
		fields = append(slices.Clone(fields), table.FieldVector)
	}
	lists, err := l.Search(ctx, queries[0].Condition.Expr, fields, l.vectors(queries), field, limit)
	hits, enough := make([][]table.Hit, len(lists)), make([]bool, len(lists))
	for i, rows := range lists {
		hits[i], enough[i] = l.settle(queries[i], rows, limit)
	}
	return hits, enough, err
}

// vectorsToo reports whether vectors come with so many rows that words find. They save a call, which takes
// longer than 40,000 numbers do, such as a hundred vectors of 384.
func (l leg) vectorsToo(limit int) bool {
	return l.lexical && l.cosines && limit*table.FieldWidth(l.Schema.Dimension) <= 40_000
}

// vectors are what a server is asked with.
func (l leg) vectors(queries []*table.Query) *commonpb.PlaceholderValue {
	if !l.lexical {
		vectors := make([][]float32, len(queries))
		for i, q := range queries {
			vectors[i] = q.Vector
		}
		return table.Placeholders(schemapb.DataType_FloatVector, vectors)
	}
	sparse := &commonpb.PlaceholderValue{Tag: "$0", Type: commonpb.PlaceholderType_SparseFloatVector}
	for _, q := range queries {
		sparse.Values = append(sparse.Values, table.BM25Query(q.Terms).Serialize())
	}
	return sparse
}

// errorBound is the factor by which a score of today's can be higher than the
// server's. It follows from the formula: with the average length a in place of a0,
// the part of a row's score that a word gives grows by a factor of at most a/a0,
// and not at all where a is smaller.
func (l leg) errorBound() float32 {
	if !l.lexical || l.record.Lowest <= 0 {
		return 1
	}
	return float32(max(1, l.record.average()/l.record.Lowest))
}

// accept scores the row of an entry, if the filter selects it.
func (l leg) accept(q *table.Query, r *table.Found) (table.Hit, bool) {
	if !r.IsEntry() || !q.Filter.Match(r.Entry.ID, r.Entry.Label, r.Entry.Meta) {
		return table.Hit{}, false
	}
	h := table.Hit{Found: r, Dense: r.Score, BM25: sdk.Unscored}
	if l.bm25 {
		h.BM25 = l.formula.Score(q.Terms, r.Counts)
	}
	if l.lexical {
		h.Dense = sdk.Unscored
	}
	if x := r.Entry.Vector; len(x) > 0 && len(x) == len(q.Vector) {
		h.Dense, r.Entry.Vector = simd.Dot(q.Vector, x), nil
	}
	return h, !l.lexical || h.BM25 > 0
}

// tolerance is how far the sums of a server may be from ours by rounding.
const tolerance = 1e-5

// longList is how long a list is in which the server may choose among the entries
// that tie with the last one: of short texts hundreds may.
const longList = 100

// settle scores what the server returned, returns the best and reports whether
// no row that it did not return can belong to them.
func (l leg) settle(q *table.Query, rows []table.Found, limit int) ([]table.Hit, bool) {
	hits := make([]table.Hit, 0, len(rows))
	lowest := float32(math.Inf(1)) // score of the server
	for i := range rows {
		lowest = min(lowest, rows[i].Score)
		if h, ok := l.accept(q, &rows[i]); ok {
			hits = append(hits, h)
		}
	}
	hits = table.Best(hits, l.lexical, l.wanted)
	if len(rows) < limit {
		return hits, true // there are no others
	}
	if len(hits) < l.wanted {
		return hits, false
	}
	last, bound := hits[l.wanted-1].Score(l.lexical), lowest*l.errorBound()
	slack := tolerance * max(1, bound)
	if last > bound+slack {
		return hits, true
	}
	return hits, l.wanted > longList && last >= bound-slack && lowest >= bound-slack
}

// Exhausted implements table.Leg: it reads every entry that the filter selects, where too
// much of what a server finds falls away.
func (l leg) Exhausted(ctx context.Context, q *table.Query) error {
	fields := slices.Concat(table.FieldsScan, table.FieldsTexts)
	if !l.lexical {
		fields = append(fields, table.FieldVector)
	}
	var hits []table.Hit
	err := walk(ctx, l.known, q.Filter, "", fields, func(r table.Found) bool {
		r.Entry.Text, r.Entry.Context = "", ""
		if h, ok := l.accept(q, &r); ok {
			hits = append(hits, h)
		}
		if len(hits) > 4*l.wanted+table.MaxRows {
			hits = table.Best(hits, l.lexical, l.wanted)
		}
		return true
	})
	*q.Found(l.lexical) = table.Best(hits, l.lexical, l.wanted)
	return err
}

// newQuery prepares a query that was checked.
func newQuery(s *known, given sdk.Query) *table.Query {
	q := &table.Query{Text: given.Text, Filter: given.Filter, Condition: table.ConditionOf(given.Filter)}
	if x := given.Vector; slices.ContainsFunc(x, func(v float32) bool { return v != 0 }) {
		q.Vector = make([]float32, table.FieldWidth(len(x)))
		copy(q.Vector, table.UnitVector(x))
	}
	if s.Analyzer != nil {
		q.Terms = table.Terms(*s.Analyzer, given.Text, s.record.Entries, s.Frequencies)
	}
	q.NoWords = len(q.Terms) == 0
	return q
}

// search finds the best entries of each leg. In a hybrid search hits of both legs carry both scores.
// Texts the SDK gets of what it keeps.
func (v *view) search(ctx context.Context, search sdk.Search, given []sdk.Query) (all []sdk.Hits, err error) {
	opened, err := v.opened()
	if err != nil {
		return nil, err
	}
	dense, lexical, err := table.Modes(search.Mode)
	switch {
	case err != nil:
		return nil, err
	case dense && opened.Schema.Dimension == 0:
		return nil, sdk.Invalid(fmt.Errorf("a %s search needs vectors and this collection has none: use mode %q", search.Mode, sdk.ModeLexical))
	case lexical && opened.Analyzer == nil:
		return nil, sdk.Invalid(fmt.Errorf("a %s search needs an analyzer and this collection was built without: use mode %q", search.Mode, sdk.ModeDense))
	}
	k, err := v.current(ctx)
	if err != nil {
		return nil, err
	}
	queries, at, invalid := table.ParseQueries(given, k.Schema.Dimension, dense, func(q sdk.Query) *table.Query { return newQuery(k, q) })
	l := leg{known: k, wanted: search.NumCandidates, bm25: lexical, cosines: dense, formula: table.NewFormula(k.Options.K1, k.Options.B, k.record.average())}
	if search.NumCandidates > 0 && k.record.Entries > 0 {
		err := table.SearchLegs(ctx, queries, search.Mode, func(lexical bool) table.Leg {
			l := l
			l.lexical = lexical
			return l
		})
		if err != nil {
			return nil, err
		}
	}
	err = table.EachQuery(ctx, queries, func(ctx context.Context, q *table.Query) error {
		_, onlyWords := q.Share()
		if !dense || q.Vector == nil {
			return nil
		}
		return l.addCosines(ctx, q, onlyWords)
	})
	all = make([]sdk.Hits, len(given))
	for i, q := range queries {
		all[at[i]] = q.Hits(search.Mode, !search.Texts)
	}
	if err == nil && len(invalid) > 0 {
		err = invalid
	}
	return all, err
}

// addCosines has the server compute the cosines of those hits whose vectors did not come.
// Asking for many rows by their keys costs a fraction of having their vectors sent. An index
// that is not exact may miss some.
func (l leg) addCosines(ctx context.Context, q *table.Query, hits []*table.Hit) error {
	hits = slices.DeleteFunc(hits, func(h *table.Hit) bool { return h.Dense == h.Dense })
	if len(hits) == 0 {
		return nil
	}
	keys := make([]string, len(hits))
	for i, h := range hits {
		keys[i] = h.Key
	}
	slices.Sort(keys) // neighbours are close to each other on the server too
	lists, err := l.Search(ctx, table.Keys(keys), nil, table.Placeholders(schemapb.DataType_FloatVector, [][]float32{q.Vector}), table.FieldVector, len(keys))
	if err != nil {
		return err
	}
	cosines := make(map[string]float32, len(keys))
	for _, r := range lists[0] {
		cosines[r.Key] = r.Score
	}
	for _, h := range hits {
		if cosine, ok := cosines[h.Key]; ok {
			h.Dense = cosine
		}
	}
	return nil
}
