package lsp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/plugin"
	"github.com/racflow/racflow/sdk"
)

// known is a catalog of what is known already: it starts no program. It lasts for one
// request, and asks the other catalog once for each kind and stage.
type known struct {
	catalog pipeline.Catalog
	uses    map[sdk.Kind][]string
	stages  map[string]sdk.Stage
}

func newKnown(c pipeline.Catalog) *known {
	return &known{catalog: c, uses: map[sdk.Kind][]string{}, stages: map[string]sdk.Stage{}}
}

// Uses implements pipeline.Catalog.
func (k *known) Uses(kind sdk.Kind) []string {
	if _, ok := k.uses[kind]; !ok {
		k.uses[kind] = k.catalog.Uses(kind)
	}
	return k.uses[kind]
}

// Stage implements pipeline.Catalog.
func (k *known) Stage(kind sdk.Kind, use string) (sdk.Stage, bool) {
	key := string(kind) + " " + use
	if s, ok := k.stages[key]; ok {
		return s, true
	}
	if !slices.Contains(k.Uses(kind), use) {
		return sdk.Stage{}, false
	}
	s, ok := k.catalog.Stage(kind, use)
	if ok {
		k.stages[key] = s
	}
	return s, ok
}

// Require implements pipeline.Requiring.
func (k *known) Require(dir string, required []plugin.Requirement) pipeline.Catalog {
	return k.require(dir, required)
}

func (k *known) require(dir string, required []plugin.Requirement) *known {
	if c, ok := k.catalog.(pipeline.Requiring); ok {
		return newKnown(c.Require(dir, required))
	}
	return k
}

// Explain implements pipeline.Explainer.
func (k *known) Explain(use string) error {
	plugin, _, third := strings.Cut(use, "/")
	if !third {
		return nil
	}
	if e, ok := k.catalog.(pipeline.Explainer); ok {
		if why := e.Explain(use); why != nil {
			return why
		}
	}
	for _, kind := range []sdk.Kind{sdk.KindChunk, sdk.KindEnrich, sdk.KindEmbed, sdk.KindStore, sdk.KindRerank, sdk.KindPrompt, sdk.KindSample, sdk.KindElect} {
		if slices.ContainsFunc(k.Uses(kind), func(use string) bool { return strings.HasPrefix(use, plugin+"/") }) {
			return nil // it has other stages
		}
	}
	return fmt.Errorf("the plugin %q has not described its stages yet, and no program is started while a file is edited; racflow validate with this file asks it once", plugin)
}
