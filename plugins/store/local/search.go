package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/racflow/racflow/sdk"
)

// search finds the best rows of each side. Where a query has a vector, lexical
// hits carry their cosine too, and where the lexical side was asked, dense hits
// carry their BM25 score.
func (s *snapshot) search(ctx context.Context, ask sdk.Search, queries []sdk.Query) ([]sdk.Hits, error) {
	dense, lexical, err := s.sides(ask.Mode)
	if err != nil {
		return nil, sdk.Invalid(err)
	}
	depth := max(ask.NumCandidates, 0)
	faults := sdk.RowErrors{}
	vectors, among := make([][]float32, len(queries)), make([]*selection, len(queries))
	for i, q := range queries {
		if vectors[i], err = s.queryVector(q.Vector, dense); err == nil && q.Filter != nil {
			err = q.Filter.Check()
		}
		if err != nil {
			faults[i] = sdk.Invalid(err)
			vectors[i] = nil
			continue
		}
		among[i] = s.selected(q.Filter)
	}
	nearest := make([][]scored, len(queries))
	if dense && depth > 0 {
		if nearest, err = s.nearest(ctx, vectors, among, depth); err != nil {
			return nil, err
		}
	}
	hits := make([]sdk.Hits, len(queries))
	err = each(ctx, len(queries), func(i int) {
		if faults[i] != nil {
			return
		}
		var matching, others []scored
		if lexical {
			others = byRow(nearest[i])
			matching = s.matching(queries[i].Text, among[i], depth, others)
			hits[i].Lexical = s.hits(matching, ask.Texts)
			for j, m := range matching {
				h := &hits[i].Lexical[j]
				h.Lexical, h.Dense = m.score, sdk.Unscored
				if len(vectors[i]) > 0 {
					h.Dense = s.kernel.Dot(vectors[i], s.vector(m.row))
				}
			}
		}
		if dense {
			hits[i].Dense = s.hits(nearest[i], ask.Texts)
			for j, n := range nearest[i] {
				h := &hits[i].Dense[j]
				h.Dense, h.Lexical = n.score, sdk.Unscored
				if lexical {
					at, _ := slices.BinarySearchFunc(others, n.row, func(o scored, row int32) int { return cmp.Compare(o.row, row) })
					h.Lexical = others[at].score
				}
			}
		}
	})
	if err == nil && len(faults) > 0 {
		err = faults
	}
	return hits, err
}

// byRow returns rows in their order, with scores of 0.
func byRow(found []scored) []scored {
	rows := make([]scored, len(found))
	for i, f := range found {
		rows[i].row = f.row
	}
	slices.SortFunc(rows, func(a, b scored) int { return cmp.Compare(a.row, b.row) })
	return rows
}

// hits returns a hit for each row. It carries its entry where that is id and
// label: those of all hits are copies in one piece of memory.
func (s *snapshot) hits(found []scored, texts bool) []sdk.Hit {
	hits, entries := make([]sdk.Hit, len(found)), make([]sdk.Entry, len(found))
	size := 0
	for i, f := range found {
		p, r := s.at(f.row)
		entries[i].ID = p.id(r)
		if size += len(entries[i].ID); !texts {
			entries[i].Label = p.label(r)
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

// sides says which sides a mode asks.
func (s *snapshot) sides(m sdk.Mode) (dense, lexical bool, err error) {
	dense, lexical = m != sdk.ModeLexical, m != sdk.ModeDense
	switch {
	case m != sdk.ModeHybrid && m != sdk.ModeDense && m != sdk.ModeLexical:
		err = fmt.Errorf("unknown search mode %q", m)
	case dense && s.schema.Dimension == 0:
		err = fmt.Errorf("a %s search needs vectors and this collection has none: use mode %q", m, sdk.ModeLexical)
	case lexical && s.analyzer == nil:
		err = fmt.Errorf("a %s search needs an analyzer and this collection was built without: use mode %q", m, sdk.ModeDense)
	}
	return dense, lexical, err
}

// queryVector returns a query's vector with norm 1, or nothing if it has no
// direction.
func (s *snapshot) queryVector(x []float32, needed bool) ([]float32, error) {
	switch {
	case len(x) == 0 && needed:
		return nil, errors.New("the query has no vector")
	case len(x) == 0 || len(x) == s.schema.Dimension && isZero(x):
		return nil, nil
	case len(x) != s.schema.Dimension:
		return nil, fmt.Errorf("the query's vector has %d dimensions and the collection's have %d", len(x), s.schema.Dimension)
	}
	unit, ok := normalise(nil, x)
	if !ok {
		return nil, errors.New("the query's vector has NaN or an infinity in it")
	}
	return unit, nil
}

// each calls do for the numbers below n, on every core.
func each(ctx context.Context, n int, do func(i int)) error {
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
			do(i)
		}
	}
	var running sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) - 1 {
		running.Go(work)
	}
	work()
	running.Wait()
	return ctx.Err()
}
