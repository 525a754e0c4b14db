package generation

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/racflow/racflow/engine/knowledge/stages"
	"github.com/racflow/racflow/engine/pipeline"
)

// Superseded returns the generations of the block's source that are not the
// current one or, with all, those of every source. What a process serves is not among them.
func (h *History) Superseded(all bool) []Generation {
	var gone []Generation
	for _, g := range h.Generations {
		if h.Doubt == nil && !g.Current && g.State != Served && (all || h.sameSource(g)) {
			gone = append(gone, g)
		}
	}
	return gone
}

// Remove removes a generation. One that another process writes stays, with a
// transient error.
func (h *History) Remove(ctx context.Context, g Generation) error {
	if g.State == Attached {
		return fmt.Errorf("collection %s is read only: it belongs to whoever makes it", g.Collection)
	}
	if h.Removed != nil {
		if err := h.Removed(g.Collection); err != nil {
			return fmt.Errorf("remove what was learnt from generation %s: %w", g.Collection, err)
		}
	}
	return Drop(ctx, h.store, g.Collection)
}

// Drop removes the collections of a generation, and nothing that was made from it elsewhere.
func Drop(ctx context.Context, store stages.Store, generation string) error {
	// The centroids first: who is cut off in between has left a generation that
	// is still listed, and that makes its centroids again if it is used.
	for _, collection := range []string{Trial(generation), Centroids(generation), generation} {
		if err := store.Drop(ctx, collection); err != nil {
			return fmt.Errorf("remove generation %s: %w", generation, err)
		}
	}
	return nil
}

// settled is how long a generation has to be left alone before a build that
// replaces it removes it. Two builders, or a person who tries one thing and then
// the other, would otherwise remove each other's.
const settled = 10 * time.Minute

// Retire removes the generations that a build which has just completed replaces:
// those that the same file built from the same source with the same embedder and
// enrichers. The file cannot ask for them any more unless it is changed back. Others
// may be in use, by another file, by a machine whose embedder resolves other values, or
// to compare embedders, or enrichers, which may have cost money. An edition replaces other editions
// alone. It returns what it removed, and why others could not be removed.
func Retire(ctx context.Context, block *pipeline.Knowledge, store stages.Store, name string, o Origin) (retired []Generation, kept []error) {
	h, err := list(ctx, block, store, name)
	if err != nil {
		return nil, []error{err}
	}
	for _, g := range h.Superseded(false) {
		otherMachine := g.Definition == o.Definition && !bytes.Equal(g.Resolved, o.Resolved)
		if g.File != o.File || o.Base != "" && g.Base == "" || !g.sameStages(o) || otherMachine || Now().Sub(g.Changed) < settled {
			continue
		}
		if err := h.Remove(ctx, g); err != nil {
			kept = append(kept, err)
			continue
		}
		retired = append(retired, g)
	}
	return retired, kept
}
