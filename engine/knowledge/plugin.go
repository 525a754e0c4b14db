package knowledge

import (
	"context"
	"fmt"
	"slices"

	"github.com/racflow/racflow/engine/identity"
	"github.com/racflow/racflow/engine/pipeline"
)

// Plugin is the program of a third party that does the work of a stage.
type Plugin struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	SHA256  string `json:"sha256,omitempty"` // of the program, or of the script and what else its command line names
}

// pluginOf is the plugin of a stage that is no built-in one; nil: it is one.
func pluginOf(stage any) *Plugin {
	if f, ok := stage.(identity.Foreign); ok {
		if name, version, hash := f.Plugin(); name != "" {
			return &Plugin{name, version, hash}
		}
	}
	return nil
}

// origin is what a generation of the block is made from, and by which plugins.
func origin(block *pipeline.Knowledge, c Chunker, enrichers []*enricher, e Embedder) Origin {
	o := Origin{
		Definition: identity.Block(block), File: fileOf(block), Path: block.Source.Path, Analyzer: block.Analyzer,
		Embedder: block.Embed.Use, Config: block.Embed.Config.Public, EmbedderPlugin: pluginOf(e),
		Enrich: enrichments(block),
	}
	if block.Chunk != nil {
		o.Chunker, o.Cut, o.ChunkerPlugin = block.Chunk.Use, block.Chunk.Config.Public, pluginOf(c)
	}
	for i := range o.Enrich {
		o.Enrich[i].Plugin = pluginOf(enrichers[i].process)
	}
	return o
}

// whyAnew says which plugins are others than those that made the newest generation
// which differs from a new one in nothing else; nil: there is none, or the store does
// not say so.
func (k *Knowledge) whyAnew(ctx context.Context) []string {
	third := func(e Enrichment) bool { return e.Plugin != nil }
	if k.origin.EmbedderPlugin == nil && k.origin.ChunkerPlugin == nil && !slices.ContainsFunc(k.origin.Enrich, third) {
		return nil
	}
	h, err := history(ctx, k.block, k.store, k.main)
	if err != nil {
		return nil
	}
	for _, g := range h.Generations {
		if g.Current || g.State == StateIncomplete || g.Definition != k.origin.Definition {
			continue
		}
		why := changes(g.ChunkerPlugin, k.origin.ChunkerPlugin, "cutting and embedding")
		for i, e := range k.origin.Enrich {
			why = append(why, changes(g.Enrich[i].Plugin, e.Plugin, "enriching and embedding")...)
		}
		return append(why, changes(g.EmbedderPlugin, k.origin.EmbedderPlugin, "embedding")...)
	}
	return nil
}

// changes names the difference between two plugins, and the work that is repeated for it.
func changes(was, is *Plugin, again string) []string {
	switch {
	case is == nil || was != nil && *was == *is:
		return nil
	case was == nil:
		return []string{fmt.Sprintf("plugin %s is version %s, was not recorded: %s again", is.Name, is.Version, again)}
	case was.Name != is.Name:
		return []string{fmt.Sprintf("the plugin is %s %s, was %s %s: %s again", is.Name, is.Version, was.Name, was.Version, again)}
	case was.Version != is.Version:
		return []string{fmt.Sprintf("plugin %s is version %s, was %s: %s again", is.Name, is.Version, was.Version, again)}
	}
	return []string{fmt.Sprintf("plugin %s %s is not the same program as before: %s again", is.Name, is.Version, again)}
}
