package build

import (
	"cmp"
	"context"
	"fmt"

	"github.com/racflow/racflow/engine/knowledge/stages"
	"github.com/racflow/racflow/engine/knowledge/units"
	"github.com/racflow/racflow/sdk"
)

const chunkBatch = 64 // documents per call of a chunker that has no opinion

// chunk calls f with units, in their order, cut as the block says. Those that cannot be
// used are noted and left out.
func (w *walk) chunk(ctx context.Context, wanted []units.Unit, f func(units.Document) error) error {
	var waiting []units.Unit // for the chunker
	size, most := 0, chunkBatch
	if s := w.Block.Chunk; s != nil {
		most = cmp.Or(s.Batch, s.Info.Batch, chunkBatch)
	}
	flush := func() error {
		err := w.cut(ctx, waiting, f)
		waiting, size = nil, 0
		return err
	}
	err := w.Source.Load(ctx, wanted, func(u units.Unit, err error) error {
		switch {
		case err != nil:
			return w.reject(u.ID, err)
		case u.Text == "":
			return f(units.Document{Unit: u})
		case w.Chunker == nil:
			return f(units.Document{Unit: u, Chunks: []sdk.Chunk{{End: len(u.Text)}}})
		case w.cutting[u.ID] != nil:
			return w.reject(u.ID, w.cutting[u.ID])
		}
		if len(waiting) > 0 && size+len(u.Text) > stages.BatchBytes || len(waiting) == most {
			if err := flush(); err != nil {
				return err
			}
		}
		waiting, size = append(waiting, u), size+len(u.Text)
		return nil
	})
	if err == nil && len(waiting) > 0 {
		err = flush()
	}
	return err
}

// cut calls the chunker.
func (w *walk) cut(ctx context.Context, wanted []units.Unit, f func(units.Document) error) error {
	documents := make([]sdk.Document, len(wanted))
	for i, u := range wanted {
		documents[i] = sdk.Document{ID: u.ID, Text: u.Text, Meta: u.Meta}
	}
	chunks := make([][]sdk.Chunk, len(wanted))
	errs, err := w.chunks.Call(ctx, len(wanted), func(ctx context.Context, at []int) error {
		found, err := w.Chunker.Chunk(ctx, stages.Pick(documents, at))
		return stages.Spread(chunks, at, found, err)
	})
	if err != nil {
		return fmt.Errorf("cut into chunks: %w", err)
	}
	for i, u := range wanted {
		if errs[i] != nil {
			w.cutting[u.ID] = fmt.Errorf("cut into chunks: %w", errs[i])
			err = w.reject(u.ID, w.cutting[u.ID])
		} else {
			err = f(units.Document{Unit: u, Chunks: chunks[i]})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// reject notes that a unit cannot be used. An error that may pass ends the build.
func (w *walk) reject(id string, err error) error {
	if stages.Passes(err) {
		return err
	}
	if w.unusable == nil {
		w.unusable = map[string]error{}
	}
	w.unusable[id] = err
	return nil
}
