package knowledge

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/pipeline"
)

// State says what a generation is to the block that it is listed for.
type State string

// The states of a generation.
const (
	StateCurrent    State = "current"    // what a run searches
	StateOld        State = "old"        // of the same source, and replaced
	StateOther      State = "other"      // of another source, or of one that was not recorded
	StateIncomplete State = "incomplete" // its first build was cut off, or is under way
	StateUnknown    State = "unknown"    // complete, but the embedder did not start to tell whether it is current
)

// Generation is one build of a knowledge: the entries with the label centroids
// that belong to them.
type Generation struct {
	Origin
	Collection string // of the entries
	Entries    int
	Documents  int // that they were made of; 0: they were rows
	State      State
	Current    bool // it has the block's fingerprint, complete or not
}

// History is what a store holds of a knowledge.
type History struct {
	Generations []Generation // the current one first, then the one changed last
	Doubt       error        // why it is not known which is current; nil: it is

	block *pipeline.Knowledge
	store Store
}

// ListGenerations finds the generations of a block's knowledge in its store.
// The embedder is started, since its fingerprint says which one is current; where
// it does not start, Doubt says why.
func ListGenerations(ctx context.Context, block *pipeline.Knowledge, stages Stages) (*History, error) {
	store, err := stages.Store(ctx)
	if err != nil {
		return nil, err
	}
	current := ""
	embedder, doubt := stages.Embedder(ctx, nil)
	var chunker Chunker
	if doubt == nil && block.Chunk != nil {
		chunker, doubt = stages.Chunker(ctx)
	}
	var enrichers []*enricher
	if doubt == nil {
		enrichers, doubt = startEnrichers(ctx, block, stages, anyStage)
	}
	if doubt == nil {
		current = collectionName(block, chunker, enrichers, embedder)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h, err := history(ctx, block, store, current)
	if err != nil {
		return nil, fmt.Errorf("knowledge %q: %w", block.Name, err)
	}
	if h.Doubt = doubt; doubt != nil {
		for i := range h.Generations {
			if g := &h.Generations[i]; g.State != StateIncomplete {
				g.State = StateUnknown
			}
		}
	}
	return h, nil
}

// history lists the generations; current is the name of the current one.
func history(ctx context.Context, block *pipeline.Knowledge, store Store, current string) (*History, error) {
	all, err := store.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the collections of the store: %w", err)
	}
	h := &History{block: block, store: store}
	for _, c := range all {
		n, ours := readNote(c.Note)
		if !ours || !isGeneration(c.Name, block.Name) {
			continue
		}
		g := Generation{Origin: n.Origin, Collection: c.Name, Entries: c.Entries, Documents: n.Documents, Current: c.Name == current}
		switch {
		case !n.Complete:
			g.State = StateIncomplete
		case g.Current:
			g.State = StateCurrent
		case h.sameSource(g):
			g.State = StateOld
		default:
			g.State = StateOther
		}
		h.Generations = append(h.Generations, g)
	}
	slices.SortFunc(h.Generations, func(a, b Generation) int {
		if a.Current != b.Current {
			if a.Current {
				return -1
			}
			return 1
		}
		return cmp.Or(b.Changed.Compare(a.Changed), strings.Compare(a.Collection, b.Collection))
	})
	return h, nil
}

func (h *History) sameSource(g Generation) bool { return g.Path == h.block.Source.Path }

// Current returns the generation that has the block's fingerprint, or nil if
// there is none or it is not known.
func (h *History) Current() *Generation {
	if len(h.Generations) > 0 && h.Generations[0].Current {
		return &h.Generations[0]
	}
	return nil
}

// Superseded returns the generations of the block's source that are not the
// current one or, with all, those of every source.
func (h *History) Superseded(all bool) []Generation {
	var gone []Generation
	for _, g := range h.Generations {
		if h.Doubt == nil && !g.Current && (all || h.sameSource(g)) {
			gone = append(gone, g)
		}
	}
	return gone
}

// Remove removes a generation. One that another process writes stays, with a
// transient error.
func (h *History) Remove(ctx context.Context, g Generation) error {
	// The centroids first: who is cut off in between has left a generation that
	// is still listed, and that makes its centroids again if it is used.
	for _, collection := range []string{labelsOf(g.Collection), g.Collection} {
		if err := h.store.Drop(ctx, collection); err != nil {
			return fmt.Errorf("remove generation %s: %w", g.Collection, err)
		}
	}
	return nil
}

// settled is how long a generation has to be left alone before a build that
// replaces it removes it. Two builders, or a person who tries one thing and then
// the other, would otherwise remove each other's.
const settled = 10 * time.Minute

// retire removes the generations that a build which has just completed
// replaces: those that the same file built from the same source with the same
// embedder and enrichers. The file cannot ask for them any more unless it is
// changed back. Others may be in use, by another file or to compare embedders, or
// enrichers, which may have cost money.
func (k *Knowledge) retire(ctx context.Context) {
	h, err := history(ctx, k.block, k.store, k.main)
	if err != nil {
		k.Report.Kept = append(k.Report.Kept, err)
		return
	}
	for _, g := range h.Superseded(false) {
		if g.File != fileOf(k.block) || g.Embedder != k.block.Embed.Use || !sameEnrichers(g.Enrich, enrichments(k.block)) || now().Sub(g.Changed) < settled {
			continue
		}
		if err := h.Remove(ctx, g); err != nil {
			k.Report.Kept = append(k.Report.Kept, err)
			continue
		}
		k.Report.Retired = append(k.Report.Retired, g)
	}
}

// sameEnrichers compares what enriches, however it is configured.
func sameEnrichers(a, b []Enrichment) bool {
	return slices.EqualFunc(a, b, func(x, y Enrichment) bool { return x.Name == y.Name && x.Use == y.Use })
}
