package knowledge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/racflow/racflow/engine/identity"
	"github.com/racflow/racflow/engine/knowledge/build"
	"github.com/racflow/racflow/engine/knowledge/generation"
	"github.com/racflow/racflow/engine/knowledge/stages"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// Stand is a generation as it was when somebody began to search it.
type Stand struct {
	Collection string
	Content    string // hash of what its entries were made from
}

// stand opens a generation as it is, for a part of a run whose knowledge another process has
// built. The source need not be there. What the generation was made with is used again: what
// the embedder has learnt and resolved.
func stand(ctx context.Context, block *pipeline.Knowledge, starter stages.Starter, s Stand) (*Knowledge, error) {
	k, err := reopened(ctx, block, starter, s)
	if err != nil {
		return nil, fmt.Errorf("knowledge %q: %w", block.Name, err)
	}
	return k, nil
}

func reopened(ctx context.Context, block *pipeline.Knowledge, starter stages.Starter, s Stand) (*Knowledge, error) {
	store, err := starter.Store(ctx)
	if err != nil {
		return nil, err
	}
	_, note, err := find(ctx, store, s)
	if err != nil {
		return nil, err
	}
	embedder, err := starter.Embedder(ctx, note.State, note.Resolved)
	if err != nil {
		return nil, err
	}
	schema := sdk.Schema{Dimension: embedder.Dimension(), Analyzer: block.Analyzer}
	have, err := store.Open(ctx, s.Collection, schema)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	centroids := generation.Centroids(s.Collection)
	if state, err := store.Open(ctx, centroids, sdk.Schema{Dimension: schema.Dimension}); err != nil {
		return nil, fmt.Errorf("open centroids: %w", err)
	} else if string(state.Note) != note.Source {
		return nil, errors.New("its centroids are not those of its entries: another build is at work on it")
	}
	labels := map[string]bool{}
	if err := stages.Scan(ctx, store, centroids, sdk.Scan{}, func(e sdk.Entry) { labels[e.Label] = true }); err != nil {
		return nil, err
	}
	k := &Knowledge{Labels: slices.Sorted(maps.Keys(labels)), block: block, embedder: embedder}
	k.Report = build.Report{Name: block.Name, Embedder: block.Embed.Use, Store: block.Store.Use, Entries: have.Entries, Documents: note.Documents, Unchanged: true}
	return k.of(store, s.Collection, s.Content, schema.Dimension), nil
}

// Embedder is a digest of what the running embedder makes of a text: its arguments and what it
// depends on beside them. Where files stand is not in it.
func (k *Knowledge) Embedder() string {
	if k.embedder == nil {
		return ""
	}
	return identity.Output(k.embedder)
}
