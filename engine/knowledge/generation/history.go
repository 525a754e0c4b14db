package generation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/knowledge/stages"
	"github.com/racflow/racflow/engine/pipeline"
)

// State says what a generation is to the block that it is listed for.
type State string

// The states of a generation.
const (
	Current    State = "current"    // what a run searches
	Old        State = "old"        // of the same source, and replaced
	Other      State = "other"      // of another source, or of one that was not recorded
	Served     State = "served"     // an edition that a process serves
	Incomplete State = "incomplete" // its first build was cut off, or is under way
	Attached   State = "attached"   // a collection that somebody else makes: read only
	Unknown    State = "unknown"    // complete, but the stages did not start that say whether it is current
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
	// Removed is called with the collection of a generation before Remove removes it, to
	// remove what was made from it elsewhere; may be nil.
	Removed func(collection string) error

	block *pipeline.Knowledge
	store stages.Store
}

// List finds the generations of a block's knowledge in its store. The stages are
// started, since their fingerprints say which one is current; where one does not
// start, Doubt says why.
func List(ctx context.Context, block *pipeline.Knowledge, starter stages.Starter) (*History, error) {
	store, err := starter.Store(ctx)
	if err != nil {
		return nil, err
	}
	if block.Attached() {
		return listAttached(ctx, block, store)
	}
	set, doubt := stages.Start(ctx, block, starter)
	current := ""
	if doubt == nil {
		current, doubt = Choose(ctx, block, starter, store, &set)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h, err := list(ctx, block, store, current)
	if err != nil {
		return nil, fmt.Errorf("knowledge %q: %w", block.Name, err)
	}
	if h.Doubt = doubt; doubt != nil {
		for i := range h.Generations {
			if g := &h.Generations[i]; g.State != Incomplete {
				g.State = Unknown
			}
		}
	}
	return h, nil
}

// listAttached lists the collection that a block attaches: nobody but its owner makes generations
// of it, and none is removed.
func listAttached(ctx context.Context, block *pipeline.Knowledge, store stages.Store) (*History, error) {
	found, err := store.Attach(ctx)
	if err != nil {
		return nil, fmt.Errorf("knowledge %q: %w", block.Name, err)
	}
	return &History{block: block, store: store, Generations: []Generation{{
		Origin: Origin{Embedder: block.Embed.Use, Config: block.Embed.Config.Public}, Collection: found.Name, Entries: found.Entries, State: Attached, Current: true,
	}}}, nil
}

// list lists the generations; current is the name of the current one.
func list(ctx context.Context, block *pipeline.Knowledge, store stages.Store, current string) (*History, error) {
	all, err := store.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the collections of the store: %w", err)
	}
	h := &History{block: block, store: store}
	for _, c := range all {
		n, ours := ReadNote(c.Note)
		if !ours || !isName(c.Name, block.Name) {
			continue
		}
		g := Generation{Origin: n.Origin, Collection: c.Name, Entries: c.Entries, Documents: n.Documents, Current: c.Name == current}
		switch {
		case !n.Complete:
			g.State = Incomplete
		case g.Current:
			g.State = Current
		case n.held(""):
			g.State = Served
		case h.sameSource(g):
			g.State = Old
		default:
			g.State = Other
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

func (h *History) sameSource(g Generation) bool { return g.Path == h.block.Main().Path }

// Current returns the generation that has the block's fingerprint, or nil if
// there is none or it is not known.
func (h *History) Current() *Generation {
	if len(h.Generations) > 0 && h.Generations[0].Current {
		return &h.Generations[0]
	}
	return nil
}

// WhyAnew says which plugins and resolved values are others than in the newest generation
// that differs from a new one, of the given name and origin, in nothing else; nil:
// there is none, or the store does not say so.
func WhyAnew(ctx context.Context, block *pipeline.Knowledge, store stages.Store, name string, o Origin) []string {
	if !o.foreign() && o.Resolved == nil {
		return nil
	}
	h, err := list(ctx, block, store, name)
	if err != nil {
		return nil
	}
	for _, g := range h.Generations {
		if !g.Current && g.State != Incomplete && g.Definition == o.Definition && (g.Base == "" || g.Base != o.Base) {
			return o.changes(g.Origin)
		}
	}
	return nil
}
