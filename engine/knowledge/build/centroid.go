package build

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/racflow/racflow/engine/knowledge/generation"
	"github.com/racflow/racflow/engine/knowledge/stages"
	"github.com/racflow/racflow/sdk"
)

// centroid is the mean direction of a label's vectors, as in a nearest
// centroid classifier with cosine distance (Han and Karypis 2000).
type centroid struct{ sum []float64 }

func (c *centroid) add(v []float32) {
	for i, x := range v {
		c.sum[i] += float64(x)
	}
}

// vector returns the centroid with norm 1; all zero where the vectors cancel
// each other out.
func (c *centroid) vector() []float32 {
	var square float64
	for _, x := range c.sum {
		square += x * x
	}
	out := make([]float32, len(c.sum))
	if square == 0 {
		return out
	}
	for i, x := range c.sum {
		out[i] = float32(x / math.Sqrt(square))
	}
	return out
}

// buildCentroids makes the centroids of the given labels again, or of all labels where
// the centroids are not those of the source as it was before.
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
	sums := map[string]*centroid{}
	err := stages.Scan(ctx, b.Store, b.Collection, s, func(e sdk.Entry) {
		if e.Label == "" {
			return
		}
		c := sums[e.Label]
		if c == nil {
			c = &centroid{sum: make([]float64, len(e.Vector))}
			sums[e.Label] = c
		}
		c.add(e.Vector)
	})
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
	var entries []sdk.Entry
	for _, label := range slices.Sorted(maps.Keys(sums)) {
		known[label] = true
		entries = append(entries, sdk.Entry{ID: label, Label: label, Vector: sums[label].vector()})
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
