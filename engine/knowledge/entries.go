package knowledge

import (
	"context"
	"iter"

	"github.com/racflow/racflow/engine/knowledge/generation"
	"github.com/racflow/racflow/engine/knowledge/stages"
	"github.com/racflow/racflow/engine/rule"
	"github.com/racflow/racflow/sdk"
)

// backing is what the entries of a knowledge are read from beside searches: a generation that
// racflow has built, or an attached collection with its sample.
type backing interface {
	// Pages yields entries, with those of their parts that are wanted: those that stages learn
	// from. An error is the last.
	Pages(ctx context.Context, want sdk.Scan) iter.Seq2[[]sdk.Entry, error]
	// Whole is Pages for who needs every entry that there is, or an error that says why that
	// cannot be had.
	Whole(ctx context.Context, want sdk.Scan) iter.Seq2[[]sdk.Entry, error]
	// Scale is what an extent of the entries of Pages comes to for all that there are.
	Scale(e rule.Extent) rule.Extent
	// Nearest returns for each vector its nearest label centroids, at most n.
	Nearest(ctx context.Context, vectors [][]float32, n int) ([][]sdk.Candidate, error)
	// Hold and Leave are those of Knowledge.
	Hold(ctx context.Context, holder string) error
	Leave(ctx context.Context, holder string, drop bool) (dropped bool, err error)
}

// built is a generation in a store.
type built struct {
	store      stages.Store
	collection string
	content    string
	schema     sdk.Schema
	// search is that of the knowledge, for the centroids.
	search func(ctx context.Context, collection string, r sdk.Ranking, queries []sdk.Query, fresh int) ([][]sdk.Candidate, error)
}

func (b *built) Pages(ctx context.Context, want sdk.Scan) iter.Seq2[[]sdk.Entry, error] {
	return stages.Pages(ctx, b.store, b.collection, want)
}

func (b *built) Whole(ctx context.Context, want sdk.Scan) iter.Seq2[[]sdk.Entry, error] {
	return b.Pages(ctx, want)
}

func (b *built) Scale(e rule.Extent) rule.Extent { return e }

func (b *built) Nearest(ctx context.Context, vectors [][]float32, n int) ([][]sdk.Candidate, error) {
	queries := make([]sdk.Query, len(vectors))
	for i, v := range vectors {
		queries[i].Vector = v
	}
	return b.search(ctx, generation.Centroids(b.collection), nearest(n), queries, 0) // these rows were searched for before
}

func (b *built) Hold(ctx context.Context, holder string) error {
	return generation.Hold(ctx, b.store, b.collection, b.schema, b.content, holder)
}

func (b *built) Leave(ctx context.Context, holder string, drop bool) (dropped bool, err error) {
	held, err := generation.Leave(ctx, b.store, b.collection, b.schema, b.content, holder)
	if err != nil || held || !drop {
		return false, err
	}
	return true, generation.Drop(ctx, b.store, b.collection)
}
