package search

import (
	"context"
	"maps"
	"slices"

	"github.com/milvus-io/milvus-sdk-go/v2/entity"
	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/plugins/store/milvus/internal/expression"
	"github.com/racflow/racflow/plugins/store/milvus/internal/row"
)

// addCosines gives the lexical hits their cosines. The server computes them, unless
// the vectors of all entries fit into memory: then each vector is read once, when
// its entry is found for the first time.
func (l leg) addCosines(ctx context.Context, queries []*query) error {
	queries = slices.DeleteFunc(slices.Clone(queries), func(q *query) bool { return q.vector == nil || len(q.lexical) == 0 })
	if l.Record.Entries > l.mostVectors() {
		return l.askCosines(ctx, queries)
	}
	known, err := l.readVectors(ctx, queries)
	if err != nil {
		return err
	}
	for _, q := range queries {
		for i := range q.lexical {
			if h := &q.lexical[i]; known[h.Sequence] != nil {
				h.dense = simd.Dot(q.vector, known[h.Sequence])
			}
		}
	}
	return nil
}

// askCosines has the server compute the cosines, for one query per call. Asking for
// these few rows by their keys costs a fraction of having their vectors sent.
func (l leg) askCosines(ctx context.Context, queries []*query) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for _, q := range queries {
		g.Go(func() error {
			keys := make(map[int64]string, len(q.lexical))
			for _, h := range q.lexical {
				keys[h.Sequence] = h.Key
			}
			rows, err := l.byKey(ctx, q, slices.Collect(maps.Values(keys)))
			cosines := make(map[int64]float32, len(rows))
			for _, r := range rows {
				cosines[r.Sequence] = r.Score
			}
			for i := range q.lexical {
				if cosine, ok := cosines[q.lexical[i].Sequence]; ok {
					q.lexical[i].dense = cosine
				}
			}
			return err
		})
	}
	return g.Wait()
}

// byKey searches among the rows with the keys.
func (l leg) byKey(ctx context.Context, q *query, keys []string, fields ...string) ([]row.Found, error) {
	slices.Sort(keys) // neighbours are close to each other on the server too
	lists, err := l.Search(ctx, expression.Keys(keys), fields, []entity.Vector{entity.FloatVector(q.vector)}, row.FieldVector, len(keys))
	if err != nil {
		return nil, err
	}
	return lists[0], nil
}
