package milvus

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"
	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// This file reads: the dense and the lexical leg of a search, entries by id,
// and all entries in the order in which they were put. What one call returns is of
// one commit.
//
// A server's order is only nearly right. The words of a row are weighed with the
// average length when it was put, dead rows and those of a writer at work take the
// place of others, and filters are translated to something weaker where engines
// disagree. So a leg reads more rows than wanted, scores them again with today's
// statistics, and knows by a bound on the error whether that was enough; else it
// reads more, has the server leave out what is not of the commit, and at last
// reads every row. Only among entries that tie with the last one of a list of more
// than a hundred the server may choose.
//
// A hybrid search takes one call for each leg, at once, and then one for the cosines of
// what only the words found, of those entries that the fusion may keep. Texts are read
// of what it does keep.
//
// The fusion is the one of package support: the scores of a server's own hybrid search
// differ between engines.

// find reads as many rows as it takes to be sure of the best. Rows that are not
// of the commit, such as those of a writer at work, can take the place of others; then
// the server has to leave them out.
func (l leg) find(ctx context.Context, queries []*query) error {
	limit, serverFilter := l.firstLimit(), false
	for len(queries) > 0 {
		answers, err := l.ask(ctx, queries, limit, serverFilter)
		if err != nil {
			return err
		}
		var unsure []*query
		invisible := 0
		for i, q := range queries {
			hits, sure := l.settle(q, answers[i], limit)
			l.found(q, hits)
			if !sure {
				unsure = append(unsure, q)
				invisible += answers[i].invisible
			}
		}
		queries = unsure
		switch {
		case invisible > 0:
			serverFilter = true
		case limit == table.MaxRows:
			for _, q := range queries {
				if err := l.readAll(ctx, q); err != nil {
					return err
				}
			}
			return nil
		default:
			limit = min(4*limit, table.MaxRows)
		}
	}
	return nil
}

// firstLimit is how many rows are read at first: some more than wanted, because
// dead rows and ties fall away, and more again where the server's order is less exact.
func (l leg) firstLimit() int {
	n := l.wanted + 16 + int(8*float32(l.wanted)*(l.errorBound()-1))
	return min(n+min(len(l.Dead), l.wanted), table.MaxRows)
}

// searchAnswer is what a server returned for one query.
type searchAnswer struct {
	rows      []table.Found // of the commit; dead ones too
	invisible int           // rows that came and are not of the commit
	lowest    float32       // score of all that came; infinite where nothing did
}

// ask makes one search for several queries with the same condition. A server that
// has to leave out what is not of the commit takes longer for it, and most often
// there is little of that: it is asked to only with serverFilter.
func (l leg) ask(ctx context.Context, queries []*query, limit int, serverFilter bool) ([]searchAnswer, error) {
	expr := queries[0].condition.Expr
	if serverFilter {
		expr = table.And(l.Expression(), expr)
	}
	fields := []string{table.FieldDetails}
	if queries[0].filter != nil {
		fields = append(fields, table.FieldMeta)
	}
	lists, err := l.Search(ctx, expr, fields, l.vectors(queries), l.field(), limit)
	if err != nil {
		return nil, err
	}
	answers := make([]searchAnswer, len(lists))
	for i, rows := range lists {
		a := searchAnswer{lowest: float32(math.Inf(1))}
		for i := range rows {
			a.lowest = min(a.lowest, rows[i].Score)
		}
		a.rows = slices.DeleteFunc(rows, func(r table.Found) bool { return !l.Contains(r.Sequence) })
		a.invisible = len(rows) - len(a.rows)
		if err := l.FillDetails(ctx, table.AsConfigured, a.rows); err != nil {
			return nil, err
		}
		answers[i] = a
	}
	return answers, nil
}

// tolerance is how far the sums of a server may be from ours by rounding.
const tolerance = 1e-5

// longList is how long a list is in which the server may choose among the entries
// that tie with the last one: of short texts hundreds may.
const longList = 100

// settle scores what the server returned, returns the best and reports whether
// no row that it did not return can belong to them.
func (l leg) settle(q *query, a searchAnswer, limit int) ([]hit, bool) {
	hits := make([]hit, 0, len(a.rows))
	for i := range a.rows {
		if h, ok := l.accept(q, &a.rows[i]); ok {
			hits = append(hits, h)
		}
	}
	hits = l.best(hits)
	if len(a.rows)+a.invisible < limit {
		return hits, true // there are no others
	}
	if len(hits) < l.wanted {
		return hits, false
	}
	last, bound := l.rank(hits[l.wanted-1]), a.lowest*l.errorBound()
	slack := tolerance * max(1, bound)
	if last > bound+slack {
		return hits, true
	}
	return hits, l.wanted > longList && last >= bound-slack && a.lowest >= bound-slack
}

// query is one query, and what the legs found for it.
type query struct {
	vector    []float32 // of norm 1; nil: it has none, or one without direction
	terms     []table.Term
	filter    *sdk.Filter
	condition table.Condition

	dense, lexical []hit
}

// hit is a row that a leg found, with the scores of both.
type hit struct {
	*table.Found
	dense, bm25 float32
}

func newQuery(s *Snapshot, given sdk.Query, needsVector bool) (*query, error) {
	if err := table.CheckQuery(given, s.Schema.Dimension, needsVector); err != nil {
		return nil, err
	}
	q := &query{filter: given.Filter}
	if x := given.Vector; slices.ContainsFunc(x, func(v float32) bool { return v != 0 }) {
		q.vector = make([]float32, table.FieldWidth(len(x)))
		copy(q.vector, table.UnitVector(x))
	}
	q.condition = table.ConditionOf(given.Filter)
	if s.Analyzer != nil {
		q.terms = table.Terms(*s.Analyzer, given.Text, s.Record.Entries, s.Frequencies)
	}
	return q, nil
}

// workers is how many calls of one search are on their way at a time.
const workers = 4

// Search finds the best entries of each leg. In a hybrid search dense hits carry their BM25
// score too. Texts the SDK gets of what it keeps.
func (v *View) Search(ctx context.Context, search sdk.Search, given []sdk.Query) ([]sdk.Hits, error) {
	all := make([]sdk.Hits, len(given))
	err := v.search(ctx, search, given, func(_ context.Context, _ leg, at []int, queries []*query) error {
		clear(all)
		for i, q := range queries {
			q.unscored()
			all[at[i]] = q.hits(search.Mode, !search.Texts)
		}
		return nil
	})
	return all, err
}

// Retrieve implements sdk.Retriever: it asks for the cosines and texts of those entries
// only that the fusion keeps.
func (v *View) Retrieve(ctx context.Context, r sdk.Ranking, given []sdk.Query) ([][]sdk.Candidate, error) {
	if r.Mode != sdk.ModeHybrid { // fusion leaves the order of a leg that stands alone as it is
		r.NumCandidates = min(r.NumCandidates, r.TopK)
	}
	all := make([][]sdk.Candidate, len(given))
	err := v.search(ctx, r.Search, given, func(ctx context.Context, l leg, at []int, queries []*query) error {
		clear(all)
		lists := make([][]*hit, len(queries)) // of the candidates
		err := eachQuery(ctx, queries, func(ctx context.Context, q *query) (err error) {
			i := slices.Index(queries, q)
			all[at[i]], lists[i], err = l.fuse(ctx, q, r)
			return err
		})
		if err != nil || !r.Texts {
			return err
		}
		if err := l.addTexts(ctx, slices.Concat(lists...)); err != nil {
			return err
		}
		for i, list := range lists {
			for j, h := range list {
				c := &all[at[i]][j]
				c.Text, c.Context, c.Meta = h.Entry.Text, h.Entry.Context, h.Entry.Meta
			}
		}
		return nil
	})
	return all, err
}

// fuse returns a query's candidates and the hits that they are. What only the words found
// is not nearer than the last entry that the vectors found. The cosines are asked for of
// what may be a candidate if it is as near as that, should all others be as far as can be.
func (l leg) fuse(ctx context.Context, q *query, r sdk.Ranking) ([]sdk.Candidate, []*hit, error) {
	byID := map[string]*hit{}
	for _, h := range slices.Concat(pointers(q.lexical), pointers(q.dense)) {
		byID[h.Entry.ID] = h
	}
	unscored := map[string]*hit{}
	for _, h := range q.unscored() {
		unscored[h.Entry.ID] = h
	}
	fuse := func(cosine float32, topK int) []sdk.Candidate {
		for _, h := range unscored {
			h.dense = cosine
		}
		return support.Fuse(q.hits(r.Mode, true), r.Fusion, topK)
	}
	if len(unscored) > 0 {
		nearest := float32(1)
		if n := len(q.dense); n > 0 && n == r.NumCandidates {
			nearest = q.dense[n-1].dense + tolerance
		}
		least := float32(math.Inf(-1))
		if sure := fuse(-1, r.TopK); len(sure) > 0 && len(sure) == r.TopK {
			least = sure[r.TopK-1].Score
		}
		var ask []*hit
		for _, c := range fuse(nearest, len(byID)) {
			if h := unscored[c.ID]; h != nil && c.Score >= least {
				ask = append(ask, h)
				delete(unscored, c.ID)
			}
		}
		if err := l.addCosines(ctx, q, ask); err != nil {
			return nil, nil, err
		}
	}
	candidates := fuse(-1, r.TopK)
	list := make([]*hit, len(candidates))
	for i, c := range candidates {
		list[i] = byID[c.ID]
	}
	return candidates, list, nil
}

// search runs the legs and has finish complete what they found: of the queries that can
// be searched, at their places among those that are given.
func (v *View) search(ctx context.Context, search sdk.Search, given []sdk.Query, finish func(ctx context.Context, l leg, at []int, queries []*query) error) error {
	opened, err := v.Opened()
	if err != nil {
		return err
	}
	dense, lexical := search.Mode != sdk.ModeLexical, search.Mode != sdk.ModeDense
	switch {
	case dense && lexical && search.Mode != sdk.ModeHybrid:
		return sdk.Invalid(fmt.Errorf("unknown search mode %q", search.Mode))
	case dense && opened.Schema.Dimension == 0:
		return sdk.Invalid(fmt.Errorf("a %s search needs vectors and this collection has none: use mode %q", search.Mode, sdk.ModeLexical))
	case lexical && opened.Analyzer == nil:
		return sdk.Invalid(fmt.Errorf("a %s search needs an analyzer and this collection was built without: use mode %q", search.Mode, sdk.ModeDense))
	}
	invalid := sdk.RowErrors{}
	err = v.Read(ctx, func(snap *Snapshot) error {
		clear(invalid)
		at := make([]int, 0, len(given))
		queries := make([]*query, 0, len(given))
		for i, q := range given {
			parsed, err := newQuery(snap, q, dense)
			if err != nil {
				invalid[i] = sdk.Invalid(err)
				continue
			}
			at, queries = append(at, i), append(queries, parsed)
		}
		l := leg{Snapshot: snap, wanted: search.NumCandidates, bm25: lexical, formula: snap.Formula()}
		if search.NumCandidates > 0 && snap.Record.Entries > 0 {
			g, ctx := errgroup.WithContext(ctx)
			if dense {
				g.Go(func() error { return l.search(ctx, queries) })
			}
			if lexical {
				words := l
				words.lexical = true
				g.Go(func() error { return words.search(ctx, queries) })
			}
			if err := g.Wait(); err != nil {
				return err
			}
		}
		return finish(ctx, l, at, queries)
	})
	if err == nil && len(invalid) > 0 {
		err = invalid
	}
	return err
}

// eachQuery calls f with each query, some at a time.
func eachQuery(ctx context.Context, queries []*query, f func(context.Context, *query) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for _, q := range queries {
		g.Go(func() error { return f(ctx, q) })
	}
	return g.Wait()
}

func pointers(hits []hit) []*hit {
	all := make([]*hit, len(hits))
	for i := range hits {
		all[i] = &hits[i]
	}
	return all
}

// unscored are the lexical hits whose cosine is not known from the dense ones, which give it to the others.
func (q *query) unscored() (unscored []*hit) {
	if q.vector == nil {
		return nil
	}
	known := map[int64]float32{}
	for _, h := range q.dense {
		known[h.Sequence] = h.dense
	}
	for i := range q.lexical {
		h := &q.lexical[i]
		if cosine, ok := known[h.Sequence]; ok {
			h.dense = cosine
		} else {
			unscored = append(unscored, h)
		}
	}
	return unscored
}

// hits are what the legs of a mode found, as the SDK takes it.
func (q *query) hits(mode sdk.Mode, entries bool) (hits sdk.Hits) {
	convert := func(from []hit) []sdk.Hit {
		to := make([]sdk.Hit, len(from))
		for i := range from {
			to[i] = sdk.Hit{ID: from[i].Entry.ID, Dense: from[i].dense, Lexical: from[i].bm25}
			if entries {
				to[i].Entry = &from[i].Entry
			}
		}
		return to
	}
	if mode != sdk.ModeLexical {
		hits.Dense = convert(q.dense)
	}
	if mode != sdk.ModeDense {
		hits.Lexical = convert(q.lexical)
	}
	return hits
}

// addCosines has the server compute the cosines of hits. Asking for a few rows by their
// keys costs a fraction of having their vectors sent. An index that is not exact may
// miss some.
func (l leg) addCosines(ctx context.Context, q *query, hits []*hit) error {
	if len(hits) == 0 {
		return nil
	}
	keys := make([]string, len(hits))
	for i, h := range hits {
		keys[i] = h.Key
	}
	slices.Sort(keys) // neighbours are close to each other on the server too
	lists, err := l.Search(ctx, table.Keys(keys), nil, table.Placeholders(schemapb.DataType_FloatVector, [][]float32{q.vector}), table.FieldVector, len(keys))
	if err != nil {
		return err
	}
	cosines := make(map[int64]float32, len(keys))
	for _, r := range lists[0] {
		cosines[r.Sequence] = r.Score
	}
	for _, h := range hits {
		h.dense = sdk.Unscored
		if cosine, ok := cosines[h.Sequence]; ok {
			h.dense = cosine
		}
	}
	return nil
}

// addTexts reads the texts, contexts and metadata of hits.
func (l leg) addTexts(ctx context.Context, hits []*hit) error {
	at := map[int64][]*hit{}
	var keys []string
	for _, h := range hits {
		if at[h.Sequence] == nil {
			keys = append(keys, h.Key)
		}
		at[h.Sequence] = append(at[h.Sequence], h)
	}
	for part := range slices.Chunk(keys, table.LookUp) {
		rows, err := l.Query(ctx, table.AsConfigured, table.Keys(part), slices.Concat([]string{table.FieldKey}, table.FieldsTexts)...)
		if err != nil {
			return err
		}
		for _, r := range rows {
			for _, h := range at[r.Sequence] {
				h.Entry.Text, h.Entry.Context, h.Entry.Meta = r.Entry.Text, r.Entry.Context, r.Entry.Meta
			}
			delete(at, r.Sequence)
		}
	}
	if len(at) > 0 {
		return table.LostRows(len(keys)-len(at), len(keys))
	}
	return nil
}
