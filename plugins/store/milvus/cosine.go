package milvus

import (
	"context"
	"slices"

	"github.com/milvus-io/milvus-sdk-go/v2/entity"
	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/sdk"
)

// addCosines gives the lexical hits their cosines. To ask the server for these
// few rows by their keys costs a fraction of having their vectors sent.
func (c *collection) addCosines(ctx context.Context, s *state, probes []*probe) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for _, p := range probes {
		if p == nil || p.vector == nil || len(p.lexical) == 0 {
			continue
		}
		g.Go(func() error {
			cosines, err := c.cosines(ctx, s, p.vector, p.lexical)
			for i := range p.lexical {
				h := &p.lexical[i]
				cosine, ok := cosines[h.sequence]
				if !ok {
					cosine = sdk.Unscored // an index that is not exact may pass over a row
				}
				h.dense = cosine
			}
			return err
		})
	}
	return g.Wait()
}

func (c *collection) cosines(ctx context.Context, s *state, vector []float32, hits []hit) (map[int64]float32, error) {
	keys := make([]string, len(hits))
	for i, h := range hits {
		keys[i] = h.key
	}
	slices.Sort(keys) // neighbours are close to each other on the server too
	lists, err := c.searchRows(ctx, withKeys(keys), nil, []entity.Vector{entity.FloatVector(vector)}, fieldVector, len(keys), c.denseParams(s.indexType, len(keys)))
	if err != nil {
		return nil, err
	}
	cosines := make(map[int64]float32, len(hits))
	for _, r := range lists[0] {
		cosines[r.sequence] = r.score
	}
	return cosines, nil
}
