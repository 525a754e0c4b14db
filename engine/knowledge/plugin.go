package knowledge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/racflow/racflow/engine/pipeline"
)

// Plugin is the program of a third party that does the work of a stage.
type Plugin struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	SHA256  string `json:"sha256,omitempty"` // of the program, or of the script and what else its command line names
}

// Foreign is what a chunker, an enricher or an embedder of a third party has
// beside its own methods. The name is empty where the stage is a built-in one.
type Foreign interface {
	Plugin() (name, version, sha256 string)
}

func pluginOf(stage any) *Plugin {
	if f, ok := stage.(Foreign); ok {
		if name, version, hash := f.Plugin(); name != "" {
			return &Plugin{name, version, hash}
		}
	}
	return nil
}

// identityOf is what the output of a stage depends on beyond its arguments. A third
// party's stage that does not say so itself may give another output with each
// program; of the built-in ones, a new version of racflow changes nothing.
func identityOf(stage interface{ Fingerprint() string }) string {
	print, plugin := stage.Fingerprint(), pluginOf(stage)
	if print == "" && plugin != nil {
		return fmt.Sprintf("plugin %s %s %s", plugin.Name, plugin.Version, plugin.SHA256)
	}
	return print
}

// origin is what a generation of the block is made from, and by which plugins.
func origin(block *pipeline.Knowledge, c Chunker, enrichers []*enricher, e Embedder) Origin {
	o := Origin{
		File: fileOf(block), Path: block.Source.Path, Analyzer: block.Analyzer,
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
		if g.Current || g.State == StateIncomplete || !g.Origin.sameButForPlugins(k.origin) {
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

func (o Origin) sameButForPlugins(as Origin) bool {
	return o.Path == as.Path && o.Analyzer == as.Analyzer &&
		o.Embedder == as.Embedder && sameJSON(o.Config, as.Config) &&
		o.Chunker == as.Chunker && sameJSON(o.Cut, as.Cut) &&
		slices.EqualFunc(o.Enrich, as.Enrich, func(a, b Enrichment) bool {
			return a.Name == b.Name && a.Use == b.Use && sameJSON(a.Config, b.Config) && a.Embedded == b.Embedded && a.Lexical == b.Lexical
		})
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// changes says how a plugin differs from what it was, and what is done again.
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
