package milvus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/milvus-io/milvus-sdk-go/v2/entity"
	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
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
// A hybrid search takes three calls: one for each leg, at once, and one for the
// cosines of what the words found, which the scores of package support need. Of a small
// collection the third call reads vectors, each once, and is left out when it would
// read none.
//
// The package does not fuse: the scores of a server's own hybrid search differ
// between engines.

// find reads as many rows as it takes to be sure of the best. Rows that are not
// of the commit, such as those of a writer at work, can take the place of others;
// then the server has to leave them out, and until the next commit from the start.
func (l leg) find(ctx context.Context, queries []*query) error {
	limit := l.firstLimit()
	needs := &l.searcher.needsServerFilter
	for len(queries) > 0 {
		answers, err := l.ask(ctx, queries, limit, needs.Load() == l.Record.Commit)
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
			needs.Store(l.Record.Commit)
			l.searcher.Log.Debug("rows that are not of the commit disturb the search: the server filters them from now on", "collection", l.Collection, "commit", l.Record.Commit)
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
	vectors := make([]entity.Vector, len(queries))
	for i, q := range queries {
		vectors[i] = l.vector(q)
	}
	fields := []string{table.FieldDetails}
	switch {
	case l.texts:
		fields = append(fields, table.FieldsTexts...)
	case queries[0].filter != nil:
		fields = append(fields, table.FieldMeta)
	}
	lists, err := l.Search(ctx, expr, fields, vectors, l.field(), limit)
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
	q := &query{filter: given.Filter}
	switch x := given.Vector; {
	case len(x) == 0 && needsVector:
		return nil, errors.New("the query has no vector")
	case len(x) > 0 && len(x) != s.Schema.Dimension:
		return nil, fmt.Errorf("the query's vector has %d dimensions and the collection's have %d", len(x), s.Schema.Dimension)
	case !table.Finite(x):
		return nil, errors.New("the query's vector has NaN or an infinity in it")
	case slices.ContainsFunc(x, func(v float32) bool { return v != 0 }):
		q.vector = make([]float32, table.FieldWidth(len(x)))
		copy(q.vector, table.UnitVector(x))
	}
	if given.Filter != nil {
		if err := given.Filter.Check(); err != nil {
			return nil, err
		}
	}
	q.condition = table.ConditionOf(given.Filter)
	if s.Analyzer != nil {
		q.terms = table.Terms(*s.Analyzer, given.Text, s.Record.Entries, s.Frequencies)
	}
	return q, nil
}

// workers is how many calls of one search are on their way at a time.
const workers = 4

// Searcher reads one collection. It is safe for concurrent use.
type Searcher struct {
	View *View
	Log  *slog.Logger
	// VectorBytes is how much memory the vectors of found rows may take. Those of a
	// collection that needs more are not kept.
	VectorBytes int

	// needsServerFilter is the number of a commit whose searches found too many
	// rows that are not of it: until the next one the server leaves them out.
	needsServerFilter atomic.Int64
	vectors           searchVectors
}

// Search finds the best entries of each leg. Where a query has a vector, lexical
// hits carry their cosine too, and in a hybrid search dense hits their BM25 score.
func (s *Searcher) Search(ctx context.Context, search sdk.Search, given []sdk.Query) ([]sdk.Hits, error) {
	opened, err := s.View.Opened()
	if err != nil {
		return nil, err
	}
	dense, lexical := search.Mode != sdk.ModeLexical, search.Mode != sdk.ModeDense
	switch {
	case dense && lexical && search.Mode != sdk.ModeHybrid:
		return nil, sdk.Invalid(fmt.Errorf("unknown search mode %q", search.Mode))
	case dense && opened.Schema.Dimension == 0:
		return nil, sdk.Invalid(fmt.Errorf("a %s search needs vectors and this collection has none: use mode %q", search.Mode, sdk.ModeLexical))
	case lexical && opened.Analyzer == nil:
		return nil, sdk.Invalid(fmt.Errorf("a %s search needs an analyzer and this collection was built without: use mode %q", search.Mode, sdk.ModeDense))
	}
	var hits []sdk.Hits
	invalid := sdk.RowErrors{}
	err = s.View.Read(ctx, func(snap *Snapshot) error {
		clear(invalid)
		hits = make([]sdk.Hits, len(given))
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
		if search.NumCandidates > 0 && snap.Record.Entries > 0 {
			l := leg{Snapshot: snap, searcher: s, wanted: search.NumCandidates, texts: search.Texts, bm25: lexical, formula: snap.Formula()}
			if err := l.both(ctx, queries, dense, lexical); err != nil {
				return err
			}
		}
		for i, q := range queries {
			if dense {
				hits[at[i]].Dense = sdkHits(q.dense)
			}
			if lexical {
				hits[at[i]].Lexical = sdkHits(q.lexical)
			}
		}
		return nil
	})
	if err == nil && len(invalid) > 0 {
		err = invalid
	}
	return hits, err
}

// both searches with the legs at once. The lexical leg is on its way first: a server
// that makes one search after the other then finds the cosines of its hits while the
// dense leg, which takes it longer, is decoded here.
func (l leg) both(ctx context.Context, queries []*query, dense, lexical bool) error {
	if !lexical {
		return l.search(ctx, queries)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if dense { // another goroutine begins later than this one goes on
			g.Go(func() error { return l.search(ctx, queries) })
		}
		lexical := l
		lexical.lexical = true
		if err := lexical.search(ctx, queries); err != nil {
			return err
		}
		return lexical.addCosines(ctx, queries)
	})
	return g.Wait()
}

func sdkHits(all []hit) []sdk.Hit {
	hits := make([]sdk.Hit, len(all))
	for i := range all {
		hits[i] = sdk.Hit{ID: all[i].Entry.ID, Dense: all[i].dense, Lexical: all[i].bm25, Entry: &all[i].Entry}
	}
	return hits
}

// searchVectors are those of rows that were found, by the numbers of the rows. No row is ever
// changed, so that a vector that is known need not be read again.
type searchVectors struct {
	mu     sync.Mutex
	table  *table.Table // of which they are; opening a collection again makes another
	origin string       // of the collection; one that was dropped and made again has another
	rows   map[int64][]float32
}

// of returns the vectors of the lexical hits that are known, and the keys of the others.
func (v *searchVectors) of(s *Snapshot, queries []*query) (known map[int64][]float32, missing []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.table != s.Table || v.origin != s.Record.Origin {
		v.table, v.origin, v.rows = s.Table, s.Record.Origin, map[int64][]float32{}
	}
	known = map[int64][]float32{}
	for _, q := range queries {
		for _, h := range q.lexical {
			if _, seen := known[h.Sequence]; seen {
				continue
			}
			known[h.Sequence] = v.rows[h.Sequence]
			if known[h.Sequence] == nil {
				missing = append(missing, h.Key)
			}
		}
	}
	return known, missing
}

// keep adds vectors. Rows that died leave theirs behind: where there is no room for
// more, all that was kept is forgotten.
func (v *searchVectors) keep(s *Snapshot, read []table.Found, limit int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.table != s.Table || v.origin != s.Record.Origin {
		return // a newer search has begun with another collection
	}
	if len(v.rows)+len(read) > limit {
		clear(v.rows)
	}
	for _, r := range read {
		v.rows[r.Sequence] = r.Entry.Vector
	}
}

// readVectors returns the vectors of the lexical hits, by the numbers of their rows. An
// index that is not exact may miss some.
func (l leg) readVectors(ctx context.Context, queries []*query) (map[int64][]float32, error) {
	known, missing := l.searcher.vectors.of(l.Snapshot, queries)
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for keys := range slices.Chunk(missing, table.VectorWindow) {
		g.Go(func() error {
			// A server sends vectors with a search in half the time that a query takes.
			rows, err := l.byKey(ctx, queries[0], keys, table.FieldVector)
			if err != nil {
				return err
			}
			l.searcher.vectors.keep(l.Snapshot, rows, l.mostVectors())
			mu.Lock()
			defer mu.Unlock()
			for _, r := range rows {
				known[r.Sequence] = r.Entry.Vector
			}
			return nil
		})
	}
	return known, g.Wait()
}

// mostVectors is how many vectors the searcher may keep.
func (l leg) mostVectors() int {
	return l.searcher.VectorBytes / (4 * table.FieldWidth(l.Schema.Dimension))
}
