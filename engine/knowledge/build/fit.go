package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/racflow/racflow/engine/knowledge/generation"
	"github.com/racflow/racflow/engine/knowledge/stages"
	"github.com/racflow/racflow/sdk"
)

// mustFit reports whether an embedder that learns from the knowledge must do
// so: the first time, and when the knowledge has grown or shrunk by a fifth
// since. Between those its vectors stay comparable, so that a changed row
// redoes one row.
func (b *builder) mustFit(rows int) bool {
	return b.Embedder.Fits() && (b.note.State == nil || rows*5 < b.note.Fitted*4 || rows*5 > b.note.Fitted*6)
}

// use continues with an embedder that has learnt. What it settled by that for arguments that
// were left to it (sdk.Resolver) is shown with the generation.
func (b *builder) use(ctx context.Context, state []byte) (err error) {
	if b.Embedder, err = b.Starter.Embedder(ctx, state, b.Origin.Resolved); err == nil && b.Origin.Resolved == nil {
		b.Origin.Resolved, err = stages.Resolved(b.Embedder)
	}
	return err
}

// settled continues with what an embedder has learnt for another edition of the generation, or
// for the generation of an edition, where that is settled: it would learn no more from other
// rows. So its vectors stay those of one choice, however often the source changes.
func (b *builder) settled(ctx context.Context) (bool, error) {
	state := generation.Settled(ctx, b.Store, b.Block.Name, cmp.Or(b.Origin.Base, b.Collection))
	if state == nil {
		return false, nil
	}
	if err := b.use(ctx, state); err != nil || b.Embedder.Fits() {
		return false, err
	}
	b.note.State, b.learnt, b.note.Fitted = state, state, len(b.Source.Units)
	return true, nil
}

// fit lets a fresh embedder learn from all entries and continues with one that has the
// outcome.
func (b *builder) fit(ctx context.Context) (err error) {
	if settled, err := b.settled(ctx); settled || err != nil {
		return err
	}
	if b.Embedder, err = b.Starter.Embedder(ctx, nil, b.Origin.Resolved); err != nil {
		return err
	}
	w := &walk{builder: b, doing: "fitting"}
	if len(b.Enrichers) > 0 {
		w.doing = "enriching"
	}
	err = b.Embedder.Fit(ctx, func(yield func([]sdk.TrainingRow, error) bool) {
		ended := errors.New("the embedder learns no more")
		err := w.batches(ctx, b.Source.Units, stages.ScanPage, func(made batch) error {
			if !yield(made.training(), nil) {
				return ended
			}
			return nil
		})
		if err != nil && !errors.Is(err, ended) {
			yield(nil, err)
		}
	})
	if err != nil {
		return fmt.Errorf("fit %s: %w", b.Block.Embed.Use, err)
	}
	if b.note.State, err = b.Embedder.State(); err != nil {
		return fmt.Errorf("fit %s: %w", b.Block.Embed.Use, err)
	}
	b.learnt, b.note.Fitted = b.note.State, len(b.Source.Units)
	return b.use(ctx, b.note.State)
}

// training are the entries as an embedder learns from them: with the texts that it embeds.
func (m batch) training() []sdk.TrainingRow {
	rows := make([]sdk.TrainingRow, len(m.entries))
	for i, text := range m.texts() {
		rows[i] = sdk.TrainingRow{ID: m.entries[i].ID, Label: m.entries[i].Label, Text: text}
	}
	return rows
}
