package search

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/plugins/store/milvus/internal/row"
	"github.com/racflow/racflow/plugins/store/milvus/internal/snapshot"
	"github.com/racflow/racflow/plugins/store/milvus/internal/table"
)

// vectors are those of rows that were found, by the numbers of the rows. No row is ever
// changed, so that a vector that is known need not be read again.
type vectors struct {
	mu     sync.Mutex
	table  *table.Table // of which they are; opening a collection again makes another
	origin string       // of the collection; one that was dropped and made again has another
	rows   map[int64][]float32
}

// of returns the vectors of the lexical hits that are known, and the keys of the others.
func (v *vectors) of(s *snapshot.Snapshot, queries []*query) (known map[int64][]float32, missing []string) {
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
func (v *vectors) keep(s *snapshot.Snapshot, read []row.Found, limit int) {
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
			rows, err := l.byKey(ctx, queries[0], keys, row.FieldVector)
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
	return l.searcher.VectorBytes / (4 * row.Width(l.Schema.Dimension))
}
