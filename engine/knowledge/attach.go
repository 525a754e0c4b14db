package knowledge

import (
	"context"
	"fmt"

	"github.com/racflow/racflow/engine/knowledge/attached"
	"github.com/racflow/racflow/engine/knowledge/build"
	"github.com/racflow/racflow/engine/knowledge/stages"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// attach opens a collection that somebody else makes.
func attach(ctx context.Context, block *pipeline.Knowledge, starter stages.Starter, o Options) (*Knowledge, error) {
	c, err := attached.Open(ctx, block, starter, attached.Options{Dir: o.Samples, Refresh: o.Refresh, Plan: o.Plan, Progress: o.Progress, Waits: o.Waits})
	if err != nil {
		return nil, err
	}
	k := &Knowledge{Labels: c.Labels(), block: block, embedder: c.Embedder}
	k.Report = build.Report{Name: block.Name, Entries: c.Entries, Unchanged: true, Embedder: block.Embed.Use, Store: block.Store.Use, Attached: c.Report()}
	k.from(c, c.Store, c.Identity())
	return k, nil
}

// from makes a knowledge that of an attached collection.
func (k *Knowledge) from(c *attached.Collection, store stages.Store, content string) {
	k.store, k.entries, k.content, k.Dimension = store, c.Name, content, c.Dimension
	k.backing, k.attached = c, c
	k.all, k.drawn = &all{}, &all{}
}

// Attached reports whether the knowledge is a collection that somebody else makes. Entries, Rows
// and Labels are then those of a sample of it.
func (k *Knowledge) Attached() bool { return k.attached != nil }

// Moved looks at an attached collection again, and reports whether it has to be opened anew:
// another one stands behind its name, or its number of entries has moved by more than a fifth.
func (k *Knowledge) Moved(ctx context.Context) (bool, error) {
	if k.attached == nil {
		return false, nil
	}
	return k.attached.Moved(ctx)
}

// CheckMode refuses a search that the knowledge cannot do.
func (k *Knowledge) CheckMode(mode sdk.Mode) error {
	if k.attached == nil || k.attached.Lexical || mode != sdk.ModeLexical {
		return nil
	}
	return fmt.Errorf(`knowledge %q: collection %s cannot be searched by words alone: use mode = "dense", or name a field in the store's config by which its server searches words`, k.block.Name, k.entries)
}

// mode is that of a search, where hybrid may be more than the knowledge can do.
func (k *Knowledge) mode(mode sdk.Mode) sdk.Mode {
	if k.attached != nil && !k.attached.Lexical && mode == sdk.ModeHybrid {
		return sdk.ModeDense
	}
	return mode
}
