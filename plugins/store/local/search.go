package local

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/racflow/racflow/sdk"
)

// search finds the best rows of each side. Where a query has a vector, lexical
// hits carry their cosine too, and where the lexical side was asked, dense hits
// carry their BM25 score.
func (t *table) search(ctx context.Context, s sdk.Search, queries []sdk.Query) ([]sdk.Hits, error) {
	dense, lexical, err := t.sides(s.Mode)
	if err != nil {
		return nil, sdk.Invalid(err)
	}
	depth := max(s.Depth, 0)
	faults := sdk.RowErrors{}
	vectors := make([][]float32, len(queries))
	for i, q := range queries {
		if vectors[i], err = t.queryVector(q.Vector, dense); err != nil {
			faults[i] = sdk.Invalid(err)
		}
	}
	nearest := make([][]scored, len(queries))
	if dense && depth > 0 {
		if nearest, err = t.nearest(ctx, vectors, depth); err != nil {
			return nil, err
		}
	}
	hits := make([]sdk.Hits, len(queries))
	err = t.each(ctx, len(queries), func(i int, sums []float32) {
		if faults[i] != nil {
			return
		}
		var matching []scored
		if lexical {
			matching = t.matching(queries[i].Text, depth, sums)
			hits[i].Lexical = make([]sdk.Hit, len(matching))
		}
		for j, m := range matching {
			h := sdk.Hit{ID: t.rows[m.row].id, Dense: sdk.Unscored, Lexical: m.score}
			if len(vectors[i]) > 0 {
				h.Dense = t.vectors.cosine(vectors[i], m.row)
			}
			hits[i].Lexical[j] = h
		}
		if dense {
			hits[i].Dense = make([]sdk.Hit, len(nearest[i]))
		}
		for j, n := range nearest[i] {
			h := sdk.Hit{ID: t.rows[n.row].id, Dense: n.score, Lexical: sdk.Unscored}
			if lexical {
				h.Lexical = sums[n.row]
			}
			hits[i].Dense[j] = h
		}
	})
	if err == nil && len(faults) > 0 {
		err = faults
	}
	return hits, err
}

// sides says which sides a mode asks.
func (t *table) sides(m sdk.Mode) (dense, lexical bool, err error) {
	dense, lexical = m != sdk.ModeLexical, m != sdk.ModeDense
	switch {
	case m != sdk.ModeHybrid && m != sdk.ModeDense && m != sdk.ModeLexical:
		err = fmt.Errorf("unknown search mode %q", m)
	case dense && t.dimension == 0:
		err = fmt.Errorf("a %s search needs vectors and this collection has none: use mode %q", m, sdk.ModeLexical)
	case lexical && t.words == nil:
		err = fmt.Errorf("a %s search needs an analyzer and this collection was built without: use mode %q", m, sdk.ModeDense)
	}
	return dense, lexical, err
}

// queryVector returns a query's vector with norm 1, or nothing if it has no
// direction.
func (t *table) queryVector(x []float32, needed bool) ([]float32, error) {
	switch {
	case len(x) == 0 && needed:
		return nil, errors.New("the query has no vector")
	case len(x) == 0 || len(x) == t.dimension && isZero(x):
		return nil, nil
	case len(x) != t.dimension:
		return nil, fmt.Errorf("the query's vector has %d dimensions and the collection's have %d", len(x), t.dimension)
	}
	unit, ok := normalise(nil, x)
	if !ok {
		return nil, errors.New("the query's vector has NaN or an infinity in it")
	}
	return unit, nil
}

// matching returns the depth rows of highest BM25 score, best first, and leaves
// the scores of all rows in sums.
func (t *table) matching(query string, depth int, sums []float32) []scored {
	clear(sums)
	if depth == 0 || !t.words.score(sums, query, len(t.place)) {
		return nil
	}
	best := top{rows: t.rows, depth: depth}
	floor := float32(math.SmallestNonzeroFloat32) // most rows score 0
	for r, sum := range sums {
		if sum >= floor {
			best.offer(scored{sum, int32(r)})
			floor = max(floor, best.floor())
		}
	}
	return best.sorted()
}

// each calls do for n queries, on every core, with room for a score per row.
func (t *table) each(ctx context.Context, n int, do func(i int, sums []float32)) error {
	var next atomic.Int64
	var running sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		running.Go(func() {
			sums, _ := t.sums.Get().(*[]float32)
			if sums == nil || cap(*sums) < len(t.rows) {
				fresh := make([]float32, len(t.rows), cap(t.rows))
				sums = &fresh
			}
			defer t.sums.Put(sums)
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				do(i, (*sums)[:len(t.rows)])
			}
		})
	}
	running.Wait()
	return ctx.Err()
}
