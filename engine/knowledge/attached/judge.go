package attached

import (
	"context"
	"fmt"

	"github.com/racflow/racflow/engine/identity"
	"github.com/racflow/racflow/engine/knowledge/stages"
	"github.com/racflow/racflow/engine/terminal"
	"github.com/racflow/racflow/sdk"
)

// foreignError says that another embedder made the vectors.
type foreignError struct{ error }

func (e *foreignError) Unwrap() error { return e.error }

// judge makes sure that the embedder is the one that made the collection. One that learns
// learns from the sample first, or has from this sample.
func (c *Collection) judge(ctx context.Context, starter stages.Starter) error {
	if c.Embedder == nil {
		return nil
	}
	resolved, err := stages.Resolved(c.Embedder)
	if err != nil {
		return err
	}
	now := comparison{Sample: c.sample.Digest, Embedder: identity.Stage(c.block.Embed, c.Embedder) + string(resolved)}
	kept := comparison{}
	known := c.place.path != "" && readJSON(c.place.compared(), &kept) == nil && kept.Sample == now.Sample && kept.Embedder == now.Embedder
	if known {
		now = kept
	}
	if c.Embedder.Fits() {
		if !known {
			if now.State, err = c.fit(ctx); err != nil {
				return fmt.Errorf("fit %s to a sample of collection %s: %w", c.block.Embed.Use, c.Name, err)
			}
		}
		if c.Embedder, err = starter.Embedder(ctx, now.State, resolved); err != nil {
			return err
		}
	}
	if !known {
		if err := c.compare(ctx, &now); err != nil {
			return fmt.Errorf("embed entries of collection %s again, to compare their vectors: %w", c.Name, err)
		}
	}
	if c.found = now; !known && c.place.path != "" { // also where they are foreign: a service is asked once
		if err := writeJSON(c.place.compared(), now); err != nil {
			return fmt.Errorf("keep how the vectors of collection %s compare: %w", c.Name, err)
		}
	}
	if now.Compared > 0 && now.Cosine < Foreign {
		return &foreignError{&UnusableError{c.block.Embed.UseRange, fmt.Errorf(
			"the vectors of collection %s are not those of %s: mean cosine %.2f over %s that %s embedded again; embed with the model that made the collection, or name the field of the vectors, or that of the texts they were made from, in the store's config",
			c.Name, c.block.Embed.Use, now.Cosine, terminal.Plural(now.Compared, "entry"), map[bool]string{true: "was", false: "were"}[now.Compared == 1])}}
	}
	return nil
}

// fit lets the embedder learn from the texts of the sample, and returns what it has learnt.
func (c *Collection) fit(ctx context.Context) ([]byte, error) {
	err := c.Embedder.Fit(ctx, func(yield func([]sdk.TrainingRow, error) bool) {
		for page, err := range c.sample.pages(sdk.Scan{Texts: true}) {
			rows := make([]sdk.TrainingRow, len(page))
			for i, e := range page {
				rows[i] = sdk.TrainingRow{ID: e.ID, Label: e.Label, Text: e.Text}
			}
			if !yield(rows, err) {
				return
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return c.Embedder.State()
}
