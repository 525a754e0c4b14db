package knowledge

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/fuse"
)

// Retrieve embeds the texts of the queries where the ranking has a dense side,
// and searches. It returns the queries' vectors, too, so that they need not be
// made twice; they are nil in a lexical search. With sdk.RowErrors, where single
// queries failed, the others' candidates stand.
func (k *Knowledge) Retrieve(ctx context.Context, r sdk.Ranking, queries []sdk.Query) ([][]sdk.Candidate, [][]float32, error) {
	var vectors [][]float32
	if r.Mode != sdk.ModeLexical {
		texts := make([]string, len(queries))
		for i, q := range queries {
			texts[i] = q.Text
		}
		var err error
		if vectors, err = k.Embed(ctx, texts); err != nil {
			return nil, nil, err
		}
		queries = slices.Clone(queries)
		for i := range queries {
			queries[i].Vector = vectors[i]
		}
	}
	defer k.searches.add(len(queries), time.Now())
	candidates, err := k.store.Retrieve(ctx, k.main, r, queries)
	if err != nil {
		err = fmt.Errorf("search: %w", err)
	}
	return candidates, vectors, err
}

// Prototypes returns for each vector the nearest label centroids, at most
// limit, nearest first: Label and Dense are set.
func (k *Knowledge) Prototypes(ctx context.Context, vectors [][]float32, limit int) ([][]sdk.Candidate, error) {
	if len(k.Labels) == 0 {
		return make([][]sdk.Candidate, len(vectors)), nil
	}
	queries := make([]sdk.Query, len(vectors))
	for i, v := range vectors {
		queries[i].Vector = v
	}
	n := min(limit, len(k.Labels))
	defer k.searches.add(0, time.Now()) // these rows were searched for before
	return k.store.Retrieve(ctx, k.centroids, nearest(n), queries)
}

// nearest ranks by cosine alone.
func nearest(n int) sdk.Ranking {
	return sdk.Ranking{Search: sdk.Search{Mode: sdk.ModeDense, Depth: n}, Fusion: sdk.Fusion{Method: fuse.Weighted, DenseWeight: 1}, TopK: n}
}

// Embed embeds texts as queries.
func (k *Knowledge) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	defer k.embeds.add(len(texts), time.Now())
	vectors, err := k.embedder.Embed(ctx, sdk.RoleQuery, texts)
	if err != nil {
		return nil, fmt.Errorf("embed: %w", err)
	}
	return vectors, nil
}

// Meter counts the work of a stage.
type Meter struct{ rows, busy atomic.Int64 }

// Meters returns the work done for queries: embedding and searching.
func (k *Knowledge) Meters() (embeds, searches *Meter) { return &k.embeds, &k.searches }

func (m *Meter) add(rows int, start time.Time) {
	m.rows.Add(int64(rows))
	m.busy.Add(int64(time.Since(start)))
}

// Read returns the rows so far and the time of the calls that they took; calls
// that overlap count each.
func (m *Meter) Read() (rows int, busy time.Duration) {
	return int(m.rows.Load()), time.Duration(m.busy.Load())
}
