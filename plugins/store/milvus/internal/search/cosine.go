package search

import (
	"context"
	"slices"

	"github.com/milvus-io/milvus-sdk-go/v2/entity"
	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/plugins/store/milvus/internal/expression"
	"github.com/racflow/racflow/plugins/store/milvus/internal/row"
	"github.com/racflow/racflow/sdk"
)

// addCosines gives the lexical hits their cosines. Asking the server for these
// few rows by their keys costs a fraction of having their vectors sent.
func (l leg) addCosines(ctx context.Context, queries []*query) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for _, q := range queries {
		if q.vector == nil || len(q.lexical) == 0 {
			continue
		}
		g.Go(func() error {
			keys := make([]string, len(q.lexical))
			for i, h := range q.lexical {
				keys[i] = h.Key
			}
			slices.Sort(keys) // neighbours are close to each other on the server too
			lists, err := l.Search(ctx, expression.Keys(keys), nil, []entity.Vector{entity.FloatVector(q.vector)}, row.FieldVector, len(keys))
			if err != nil {
				return err
			}
			cosines := make(map[int64]float32, len(keys))
			for _, r := range lists[0] {
				cosines[r.Sequence] = r.Score
			}
			for i := range q.lexical {
				h := &q.lexical[i]
				h.dense = sdk.Unscored // an index that is not exact may miss a row
				if cosine, ok := cosines[h.Sequence]; ok {
					h.dense = cosine
				}
			}
			return nil
		})
	}
	return g.Wait()
}
