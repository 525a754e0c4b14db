package build

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/racflow/racflow/engine/knowledge/centroid"
	"github.com/racflow/racflow/engine/knowledge/generation"
	"github.com/racflow/racflow/engine/knowledge/stages"
	"github.com/racflow/racflow/sdk"
)

// buildCentroids makes the centroids of the given labels, or of all where they are not those
// of the source as it was before.
func (b *builder) buildCentroids(ctx context.Context, labels map[string]bool, before string) error {
	collection := generation.Centroids(b.Collection)
	have, err := b.Store.Open(ctx, collection, sdk.Schema{Dimension: b.Embedder.Dimension()})
	if err != nil {
		return fmt.Errorf("open centroids: %w", err)
	}
	known := map[string]bool{}
	if err := stages.Scan(ctx, b.Store, collection, sdk.Scan{}, func(e sdk.Entry) { known[e.Label] = true }); err != nil {
		return err
	}
	state := []byte(b.note.Source)
	delete(labels, "")
	if !bytes.Equal(have.Note, state) || len(labels) > 0 { // entries change under the same source, too
		if err := b.replaceCentroids(ctx, labels, known, state, string(have.Note) != before); err != nil {
			return err
		}
	}
	b.Labels = slices.Sorted(maps.Keys(known))
	return nil
}

// replaceCentroids makes centroids again and keeps known, the labels that have one, up
// to date.
func (b *builder) replaceCentroids(ctx context.Context, labels, known map[string]bool, state []byte, all bool) error {
	s := sdk.Scan{Vectors: true}
	if !all {
		s.Labels = slices.Sorted(maps.Keys(labels))
	}
	sums := centroid.Sums{}
	err := stages.Scan(ctx, b.Store, b.Collection, s, func(e sdk.Entry) { sums.Add(e.Label, e.Vector) })
	if err != nil {
		return err
	}
	var gone []string
	for label := range known {
		if (all || labels[label]) && sums[label] == nil {
			gone = append(gone, label)
			delete(known, label)
		}
	}
	slices.Sort(gone)
	collection := generation.Centroids(b.Collection)
	entries := sums.Entries()
	for _, e := range entries {
		known[e.Label] = true
	}
	err = b.Store.Delete(ctx, collection, gone)
	if err == nil {
		err = b.Store.Put(ctx, collection, entries)
	}
	if err == nil {
		err = b.Store.Commit(ctx, collection, state)
	}
	return written("store centroids", err)
}
