package generation

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/source/document"
)

// Choose returns the name of the generation (index version) that belongs to a block and its stages.
//
// An embedder may resolve arguments left to it when it opens, by the processor, say. Its values for a
// generation hold for all work on that generation. If a generation exists that differs only in these
// values, Choose starts the embedder again with its values. So machines that share a store share its
// generations, and all vectors of a generation are made with the same values. If this machine cannot
// work with the values, and the fingerprint depends on them, it builds its own generation.
func Choose(ctx context.Context, block *pipeline.Knowledge, starter Starter, store Store, set *Stages) (name string, err error) {
	name = Name(block, *set)
	if set.Resolved == nil {
		return name, nil
	}
	h, err := list(ctx, block, store, name)
	if err != nil {
		return "", err
	}
	definition, ended := OriginOf(block, *set).Definition, false
	for _, g := range h.Generations { // the one with this name comes first
		if g.Definition != definition || g.Resolved == nil {
			continue
		}
		if (g.Current || g.Base == name) && bytes.Equal(g.Resolved, set.Resolved) {
			return name, nil
		}
		other := *set
		other.Resolved, ended = g.Resolved, true
		other.Embedder, err = starter.Embedder(ctx, nil, g.Resolved)
		switch {
		case err == nil && Name(block, other) == cmp.Or(g.Base, g.Collection):
			*set = other
			return cmp.Or(g.Base, g.Collection), nil
		case err != nil && g.Current:
			return "", fmt.Errorf("generation %s was made with %s, and %s cannot work with that here: name other values in the file to build another one: %w", name, g.Resolved, block.Embed.Use, err)
		}
	}
	if ended {
		set.Embedder, err = starter.Embedder(ctx, nil, set.Resolved)
	}
	return name, err
}

// State says how a generation relates to the block that lists it.
type State string

// The states of a generation.
const (
	Current    State = "current"    // runs search it
	Old        State = "old"        // of the same source, but replaced
	Other      State = "other"      // of another source, or of an unrecorded one
	Served     State = "served"     // an edition that a process serves
	Incomplete State = "incomplete" // its first build was interrupted, or is in progress
	Attached   State = "attached"   // a collection that another program maintains: read only
	Unknown    State = "unknown"    // complete; it may be current, which is unknown since the stages did not start
)

// Generation is an index version of a knowledge: its entries and their label centroids.
type Generation struct {
	Origin
	Collection string // name of the entries' collection
	Entries    int
	Documents  int                        // number of documents with entries; 0: the entries are rows
	Unread     map[string]document.Unread // what was not read of documents, by their ids
	State      State
	Current    bool // has the block's fingerprint, complete or not
}

// History lists the generations of a knowledge in a store.
type History struct {
	Generations []Generation // the current one first, then the last changed first
	Doubt       error        // why the current one is unknown; nil: it is known
	// Removed is called with the collection of a generation before Remove removes it. So data made
	// from it elsewhere can be removed, too. Removed may be nil.
	Removed func(collection string) error

	block *pipeline.Knowledge
	store Store
}

// List finds the generations of a block's knowledge in its store. It starts the stages, since their
// fingerprints determine the current generation. If a stage does not start, Doubt says why.
func List(ctx context.Context, block *pipeline.Knowledge, starter Starter) (*History, error) {
	store, err := starter.Store(ctx)
	if err != nil {
		return nil, err
	}
	if block.Attached() {
		return listAttached(ctx, block, store)
	}
	set, doubt := Start(ctx, block, starter)
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

// listAttached lists the collection that a block attaches. Its owner makes its versions, and racflow
// removes none.
func listAttached(ctx context.Context, block *pipeline.Knowledge, store Store) (*History, error) {
	found, err := store.Attach(ctx)
	if err != nil {
		return nil, fmt.Errorf("knowledge %q: %w", block.Name, err)
	}
	return &History{block: block, store: store, Generations: []Generation{{
		Origin: Origin{Embedder: block.Embed.Use, Config: block.Embed.Config.Shown()}, Collection: found.Name, Entries: found.Entries, State: Attached, Current: true,
	}}}, nil
}

// list lists the generations; current is the name of the current one.
func list(ctx context.Context, block *pipeline.Knowledge, store Store, current string) (*History, error) {
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
		g := Generation{Origin: n.Origin, Collection: c.Name, Entries: c.Entries, Documents: n.Documents, Unread: n.Unread, Current: c.Name == current}
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

// Current returns the generation that has the block's fingerprint; nil: there is none, or it is
// unknown.
func (h *History) Current() *Generation {
	if len(h.Generations) > 0 && h.Generations[0].Current {
		return &h.Generations[0]
	}
	return nil
}

// WhyAnew explains why a new generation, with the given name and origin, is needed. It names the
// plugins and resolved values in which it differs from the newest generation that is otherwise equal;
// nil: there is none, or the store cannot list it.
func WhyAnew(ctx context.Context, block *pipeline.Knowledge, store Store, name string, o Origin) []string {
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

// Superseded returns the generations of the block's source except the current one; with all, the
// generations of every source. It omits editions that a process serves.
func (h *History) Superseded(all bool) []Generation {
	var gone []Generation
	for _, g := range h.Generations {
		if h.Doubt == nil && !g.Current && g.State != Served && (all || h.sameSource(g)) {
			gone = append(gone, g)
		}
	}
	return gone
}

// Remove removes a generation. If another process writes to the generation, it stays, and the error is
// transient.
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

// Discard removes the unwanted generations of a block. It calls learnt with the collection of each, so
// that data made from it elsewhere can be removed, too.
func Discard(ctx context.Context, block *pipeline.Knowledge, store Store, unwanted func(Generation) bool, learnt func(collection string) error) error {
	h, err := list(ctx, block, store, "")
	if err != nil {
		return err
	}
	h.Removed = learnt
	var errs []error
	for _, g := range h.Generations {
		if unwanted(g) {
			errs = append(errs, h.Remove(ctx, g))
		}
	}
	return errors.Join(errs...)
}

// Drop removes the collections of a generation, but nothing made from them elsewhere.
func Drop(ctx context.Context, store Store, generation string) error {
	// The generation itself goes last. If Drop is interrupted, the generation is still listed, and its
	// centroids are computed again when it is used.
	for _, collection := range []string{Centroids(generation), generation} {
		if err := store.Drop(ctx, collection); err != nil {
			return fmt.Errorf("remove generation %s: %w", generation, err)
		}
	}
	return nil
}

// settled is how long a generation must be unused before a build that replaces it removes it.
// Otherwise two builders, or a person who switches between two settings, would remove each other's
// generations.
const settled = 10 * time.Minute

// Retire removes the generations that a just completed build replaces: those that the same file built
// from the same source with the same embedder and enrichers. The file needs them only after a change
// back. Other generations may be in use: by another file, by a machine whose embedder resolves other
// values, or to compare embedders or enrichers, which may have cost money. An edition replaces only
// other editions. Retire returns the removed generations, and why it could not remove others.
func Retire(ctx context.Context, block *pipeline.Knowledge, store Store, name string, o Origin) (retired []Generation, kept []error) {
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
