package knowledge

import (
	"context"
	"fmt"
)

// mustFit reports whether an embedder that learns from the knowledge must do
// so: the first time, and when the knowledge has grown or shrunk by a fifth
// since. Between those its vectors stay comparable, so that a changed row
// redoes one row.
func (b *builder) mustFit(rows int) bool {
	return b.embedder.Fits() && (b.note.State == nil || rows*5 < b.note.Fitted*4 || rows*5 > b.note.Fitted*6)
}

// fit lets a fresh embedder learn from all entries (Fit adds to what one
// knows) and continues with one that has the outcome. Entries are enriched for that,
// and again when they are stored: what services answered is kept, and what failed is
// not asked for again.
func (b *builder) fit(ctx context.Context) (err error) {
	if b.embedder, err = b.stages.Embedder(ctx, nil); err != nil {
		return err
	}
	b.streaming = "fitting"
	if len(b.enrichers) > 0 {
		b.streaming = "enriching"
	}
	err = b.stream(ctx, b.rows.units, scanPage, func(made batch) error {
		return b.embedder.Fit(ctx, made.texts())
	})
	b.streaming, b.fitted = "", true
	if err != nil {
		return fmt.Errorf("fit %s: %w", b.block.Embed.Use, err)
	}
	if b.note.State, err = b.embedder.State(); err != nil {
		return fmt.Errorf("fit %s: %w", b.block.Embed.Use, err)
	}
	b.note.Fitted = len(b.rows.units)
	b.embedder, err = b.stages.Embedder(ctx, b.note.State)
	return err
}
