package knowledge

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/racflow/racflow/sdk"
)

const chunkBatch = 64 // documents per call of a chunker that has no opinion

// batch is what is embedded and stored together.
type batch struct {
	entries  []sdk.Entry
	contexts []string   // of each entry, as it is embedded; nil: its own
	units    []produced // those that end in it
	whole    bool       // the last entry is the last of its unit
}

// produced is a unit of which entries were made.
type produced struct {
	id      string
	entries int
}

// chunked is a unit with its chunks: one that is all of its text where nothing
// cuts it, none where there is no text.
type chunked struct {
	unit
	chunks []sdk.Chunk
}

// passages are the chunks where they stand.
func (d chunked) passages() []sdk.Passage {
	whole := &sdk.Document{ID: d.ID, Text: d.Text, Meta: d.Meta}
	all := make([]sdk.Passage, len(d.chunks))
	for i, c := range d.chunks {
		all[i] = sdk.Passage{Document: whole, Chunk: c}
	}
	return all
}

// stream calls f with the entries of units, in batches of at most n entries and
// about batchBytes bytes of text. Only a unit of more than that is spread over
// several. Units that cannot be used are noted and left out. Where an enricher
// cannot go on, f still gets all that was complete before.
func (b *builder) stream(ctx context.Context, units []unit, n int, f func(batch) error) error {
	cut, done := cutter{n: n, f: f}, 0
	err := b.enriched(ctx, units, func(d chunked, added []addition) error {
		if err := b.checkNames(d.Meta); err != nil {
			return err
		}
		if b.leavesBare(d, added) {
			d.Hash = bare(d.Hash)
		}
		d.Hash = b.stamp(d.Hash)
		var entries []sdk.Entry
		switch {
		case len(d.chunks) == 0:
		case b.chunker == nil:
			entries = []sdk.Entry{d.Entry}
		default:
			entries = entriesOf(d.unit, d.chunks)
		}
		if done++; b.streaming != "" {
			b.tell(b.streaming, done, len(units))
		}
		return cut.add(d.ID, entries, b.add(entries, added))
	})
	if ended := new(endedError); err != nil && !errors.As(err, &ended) {
		return err
	}
	return cmp.Or(cut.flush(true), err)
}

// documents calls f with units, in their order, cut as the block says. Units that
// cannot be used are noted and left out.
func (b *builder) documents(ctx context.Context, units []unit, f func(chunked) error) error {
	var waiting []unit // for the chunker
	size, most := 0, chunkBatch
	if s := b.block.Chunk; s != nil {
		most = cmp.Or(s.Batch, s.Info.Batch, chunkBatch)
	}
	chunk := func() error {
		err := b.chunk(ctx, waiting, f)
		waiting, size = nil, 0
		return err
	}
	err := b.rows.load(ctx, units, func(u unit, err error) error {
		switch {
		case err != nil:
			return b.fault(u.ID, err)
		case u.Text == "":
			return f(chunked{unit: u})
		case b.chunker == nil:
			return f(chunked{u, []sdk.Chunk{{End: len(u.Text)}}})
		case b.uncut[u.ID] != nil:
			return b.fault(u.ID, b.uncut[u.ID])
		}
		if len(waiting) > 0 && size+len(u.Text) > batchBytes || len(waiting) == most {
			if err := chunk(); err != nil {
				return err
			}
		}
		waiting, size = append(waiting, u), size+len(u.Text)
		return nil
	})
	if err == nil && len(waiting) > 0 {
		err = chunk()
	}
	return err
}

// fault notes that a unit cannot be used. A fault that may pass ends the build.
func (b *builder) fault(id string, err error) error {
	if passes(err) {
		return err
	}
	if b.unusable == nil {
		b.unusable = map[string]error{}
	}
	b.unusable[id] = err
	return nil
}

// chunk cuts units into chunks.
func (b *builder) chunk(ctx context.Context, units []unit, f func(chunked) error) error {
	documents := make([]sdk.Document, len(units))
	for i, u := range units {
		documents[i] = sdk.Document{ID: u.ID, Text: u.Text, Meta: u.Meta}
	}
	chunks := make([][]sdk.Chunk, len(units))
	errs, err := b.chunks.do(ctx, len(units), func(ctx context.Context, at []int) error {
		found, err := b.chunker.Chunk(ctx, pick(documents, at))
		return spread(chunks, at, found, err)
	})
	if err != nil {
		return fmt.Errorf("cut into chunks: %w", err)
	}
	for i, u := range units {
		if why := errs[i]; why != nil {
			if b.uncut == nil {
				b.uncut = map[string]error{}
			}
			b.uncut[u.ID] = fmt.Errorf("cut into chunks: %w", why)
			if err := b.fault(u.ID, b.uncut[u.ID]); err != nil {
				return err
			}
			continue
		}
		if err := f(chunked{u, chunks[i]}); err != nil {
			return err
		}
	}
	return nil
}
