package generation

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
)

// Choose names the generation that a block and its stages belong to.
//
// An embedder may resolve arguments that were left to it when it opens, by the
// processor, say. What it resolved for a generation holds for all work on that: where
// there is one that differs in nothing else, the embedder is started again with those
// values. So machines that share a store share its generations, and a generation's
// vectors are made in one way. Where this machine cannot work with them, and the
// fingerprint tells the vectors apart, it builds a generation of its own. A generation of a
// version whose embedder left nothing open is used with the values that give it its name.
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
	for _, g := range h.Generations { // the one of this name first
		if g.Definition != definition {
			continue
		}
		if (g.Current || g.Base == name) && bytes.Equal(g.Resolved, set.Resolved) {
			return name, nil
		}
		for _, resolved := range possible(block, g, set.Resolved) {
			other := *set
			other.Resolved, ended = resolved, true
			other.Embedder, err = starter.Embedder(ctx, nil, resolved)
			switch {
			case err == nil && Name(block, other) == cmp.Or(g.Base, g.Collection):
				*set = other
				return cmp.Or(g.Base, g.Collection), nil
			case err != nil && g.Current:
				return "", fmt.Errorf("generation %s was made with %s, and %s cannot work with that here: name other values in the file to build another one: %w", name, resolved, block.Embed.Use, err)
			}
		}
	}
	if ended {
		set.Embedder, err = starter.Embedder(ctx, nil, set.Resolved)
	}
	return name, err
}

// possible lists what an embedder may have resolved for a generation: what its note says, or,
// where that is from before there was a choice, each other value of an argument that is
// resolved now.
func possible(block *pipeline.Knowledge, g Generation, now json.RawMessage) (all []json.RawMessage) {
	if g.Resolved != nil {
		return []json.RawMessage{g.Resolved}
	}
	for _, a := range block.Embed.Info.Arguments {
		for _, value := range a.OneOf {
			var values map[string]any
			if err := json.Unmarshal(now, &values); err != nil || g.Current || values[a.Name] == nil || values[a.Name] == value {
				continue
			}
			values[a.Name] = value
			other, _ := json.Marshal(values) // as it was read
			all = append(all, other)
		}
	}
	return all
}

// State says what a generation is to the block that it is listed for.
type State string

// The states of a generation.
const (
	Current    State = "current"    // what a run searches
	Old        State = "old"        // of the same source, and replaced
	Other      State = "other"      // of another source, or of one that was not recorded
	Served     State = "served"     // an edition that a process serves
	Incomplete State = "incomplete" // its first build was cut off, or is under way
	Attached   State = "attached"   // a collection that another program makes: read only
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
	store Store
}

// List finds the generations of a block's knowledge in its store. The stages are
// started, since their fingerprints say which one is current; where one does not
// start, Doubt says why.
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

// listAttached lists the collection that a block attaches: nobody but its owner makes generations
// of it, and none is removed.
func listAttached(ctx context.Context, block *pipeline.Knowledge, store Store) (*History, error) {
	found, err := store.Attach(ctx)
	if err != nil {
		return nil, fmt.Errorf("knowledge %q: %w", block.Name, err)
	}
	return &History{block: block, store: store, Generations: []Generation{{
		Origin: Origin{Embedder: block.Embed.Use, Config: block.Embed.Config.Public}, Collection: found.Name, Entries: found.Entries, State: Attached, Current: true,
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
func WhyAnew(ctx context.Context, block *pipeline.Knowledge, store Store, name string, o Origin) []string {
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
func Drop(ctx context.Context, store Store, generation string) error {
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
