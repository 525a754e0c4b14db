package generation

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/racflow/racflow/engine/knowledge/stages"
	"github.com/racflow/racflow/engine/pipeline"
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
func Choose(ctx context.Context, block *pipeline.Knowledge, starter stages.Starter, store stages.Store, set *stages.Set) (name string, err error) {
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
