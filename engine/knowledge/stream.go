package knowledge

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

const chunkBatch = 64 // documents per call of a chunker that has no opinion

// batch is what is embedded and stored together.
type batch struct {
	entries []sdk.Entry
	units   []produced // those that end in it
	whole   bool       // the last entry is the last of its unit
}

// produced is a unit of which entries were made.
type produced struct {
	id      string
	entries int
}

// stream calls f with the entries of units, in batches of at most n entries and
// about batchBytes bytes of text. Only a unit of more than that is spread over
// several. Units that cannot be used are noted and left out.
func (b *builder) stream(ctx context.Context, units []unit, n int, f func(batch) error) error {
	cut := cutter{n: n, f: f}
	var waiting []unit // for the chunker
	size, most := 0, chunkBatch
	if s := b.block.Chunk; s != nil {
		most = cmp.Or(s.Batch, s.Info.Batch, chunkBatch)
	}
	chunk := func() error {
		err := b.chunk(ctx, waiting, &cut)
		waiting, size = nil, 0
		return err
	}
	err := b.rows.load(ctx, units, func(u unit, err error) error {
		if err != nil {
			return b.fault(u.ID, err)
		}
		u.Hash = b.stamp(u.Hash)
		switch {
		case u.Text == "":
			return cut.add(u.ID, nil)
		case b.chunker == nil:
			return cut.add(u.ID, []sdk.Entry{u.Entry})
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
	if err != nil {
		return err
	}
	return cut.flush(true)
}

// Texts calls f with every text that the knowledge would embed if its store were
// empty. Of the report only the source's share is filled in.
func Texts(ctx context.Context, block *pipeline.Knowledge, stages Stages, f func(text string)) (Report, error) {
	k := &Knowledge{block: block, Report: Report{Name: block.Name, Embedder: block.Embed.Use, Store: block.Store.Use}}
	if block.Chunk != nil {
		var err error
		if k.chunker, err = stages.Chunker(ctx); err != nil {
			return k.Report, err
		}
	}
	b := builder{Knowledge: k, stages: stages}
	if err := b.read(ctx); err != nil {
		return k.Report, &SourceError{block.Source.Range, err}
	}
	err := b.stream(ctx, b.rows.units, embedBatch, func(m batch) error {
		for _, text := range passages(m.entries) {
			f(text)
		}
		return nil
	})
	b.countDocuments()
	return k.Report, err
}

// fault notes that a unit cannot be used. A fault that may pass ends the build.
func (b *builder) fault(id string, err error) error {
	switch sdk.CodeOf(err) {
	case sdk.CodeTransient, sdk.CodeCancelled, sdk.CodeDeadline:
		return err
	}
	if b.unusable == nil {
		b.unusable = map[string]error{}
	}
	b.unusable[id] = err
	return nil
}

// chunk cuts documents into entries.
func (b *builder) chunk(ctx context.Context, units []unit, cut *cutter) error {
	documents := make([]sdk.Document, len(units))
	for i, u := range units {
		documents[i] = sdk.Document{ID: u.ID, Text: u.Text, Meta: u.Meta}
	}
	chunks, err := b.chunker.Chunk(ctx, documents)
	var failed sdk.RowErrors
	if err != nil && !errors.As(err, &failed) {
		return fmt.Errorf("cut into chunks: %w", err)
	}
	for i, u := range units {
		if why := failed[i]; why != nil {
			if err := b.fault(u.ID, fmt.Errorf("cut into chunks: %w", why)); err != nil {
				return err
			}
			continue
		}
		if err := cut.add(u.ID, entriesOf(u, chunks[i])); err != nil {
			return err
		}
	}
	return nil
}

// cutter makes batches of the entries of units.
type cutter struct {
	n       int
	f       func(batch) error
	pending batch
	size    int
}

func (c *cutter) add(id string, entries []sdk.Entry) error {
	bytes := 0
	for _, e := range entries {
		bytes += sizeOf(e)
	}
	if len(c.pending.entries)+len(entries) > c.n || c.size+bytes > batchBytes {
		if err := c.flush(true); err != nil {
			return err
		}
	}
	for _, e := range entries {
		if len(c.pending.entries) == c.n || c.size > 0 && c.size+sizeOf(e) > batchBytes {
			if err := c.flush(false); err != nil {
				return err
			}
		}
		c.pending.entries, c.size = append(c.pending.entries, e), c.size+sizeOf(e)
	}
	c.pending.units = append(c.pending.units, produced{id, len(entries)})
	return nil
}

func sizeOf(e sdk.Entry) int { return len(e.Text) + len(e.Context) }

func (c *cutter) flush(whole bool) error {
	if len(c.pending.entries)+len(c.pending.units) == 0 {
		return nil
	}
	c.pending.whole = whole
	full := c.pending
	c.pending, c.size = batch{}, 0
	return c.f(full)
}
