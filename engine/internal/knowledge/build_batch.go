package knowledge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/sdk"
)

// batch is a set of entries that are embedded and stored together.
type batch struct {
	delimiter string // stands between an entry's text and its terms
	entries   []sdk.Entry
	contexts  []string   // embedded in place of each entry's own context; nil: the own contexts
	units     []produced // units whose last entry is in the batch
}

// produced is a unit with the number of its entries.
type produced struct {
	id      string
	entries int
}

// ids returns the ids of the units.
func (m batch) ids() []string {
	all := make([]string, len(m.units))
	for i, u := range m.units {
		all[i] = u.id
	}
	return all
}

// texts returns the texts to embed: an entry's context, its text and its terms, in this order.
func (m batch) texts() []string {
	all := make([]string, len(m.entries))
	for i, e := range m.entries {
		context := e.Context
		if m.contexts != nil {
			context = m.contexts[i]
		}
		before, terms := sdk.SplitContext(context)
		if all[i] = e.Text; before != "" {
			all[i] = before + "\n" + all[i]
		}
		if len(terms) > 0 {
			all[i] += "\n" + m.delimiter + "\n" + strings.Join(terms, "\n")
		}
	}
	return all
}

// batcher groups the entries of units into batches.
type batcher struct {
	delimiter string
	n         int // most entries of a batch
	f         func(batch) error
	pending   batch
	size      int
}

// add adds the entries of a unit. contexts are embedded in place of their own contexts; nil: their own.
func (c *batcher) add(id string, entries []sdk.Entry, contexts []string) error {
	for i, e := range entries {
		if len(c.pending.entries) == c.n || c.size > 0 && c.size+sizeOf(e) > generation.BatchBytes {
			if err := c.flush(); err != nil {
				return err
			}
		}
		c.pending.entries, c.size = append(c.pending.entries, e), c.size+sizeOf(e)
		if contexts != nil {
			c.pending.contexts = append(c.pending.contexts, contexts[i])
		}
	}
	c.pending.units = append(c.pending.units, produced{id, len(entries)})
	return nil
}

func (c *batcher) flush() error {
	if len(c.pending.entries)+len(c.pending.units) == 0 {
		return nil
	}
	full := c.pending
	full.delimiter = c.delimiter
	c.pending, c.size = batch{}, 0
	return c.f(full)
}

// sizeOf estimates the bytes that an entry adds to a message. Metadata counts, too: each chunk repeats its document's
// metadata, however large.
func sizeOf(e sdk.Entry) int {
	size := len(e.Text) + len(e.Context)
	for key, value := range e.Meta {
		size += len(key)
		if text, ok := value.(string); ok {
			size += len(text)
		}
	}
	return size
}

// putBatch puts the entries of a batch into the store, within a share of its timeout. It notes the entries that the
// store refuses.
func (w *walk) putBatch(ctx context.Context, entries []sdk.Entry) error {
	err := w.Block.Store.Patience().Bounded(ctx, len(entries), func(ctx context.Context) error { return w.Store.Put(ctx, w.Collection, entries) })
	return written("store", w.refused.take(entries, err))
}

const chunkBatch = 64 // documents per call of a chunker that states no batch size

// chunk calls f with units in their order, chunked by the block's chunker. It notes and skips unusable units.
func (w *walk) chunk(ctx context.Context, wanted []generation.Unit, f func(generation.Document) error) error {
	var waiting []generation.Unit // units for the next call of the chunker
	size, most := 0, chunkBatch
	if s := w.Block.Chunk; s != nil {
		most = cmp.Or(s.Batch, s.Info.Batch, chunkBatch)
	}
	flush := func() error {
		err := w.cut(ctx, waiting, f)
		waiting, size = nil, 0
		return err
	}
	err := w.Source.Load(ctx, wanted, func(u generation.Unit, err error) error {
		switch {
		case err != nil:
			return w.reject(u.ID, err)
		case u.Text == "":
			return f(generation.Document{Unit: u})
		case w.Chunker == nil:
			return f(generation.Document{Unit: u, Chunks: []sdk.Chunk{{End: len(u.Text)}}})
		case w.cutting[u.ID] != nil:
			return w.reject(u.ID, w.cutting[u.ID])
		}
		if len(waiting) > 0 && size+len(u.Text) > generation.BatchBytes || len(waiting) == most {
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
func (w *walk) cut(ctx context.Context, wanted []generation.Unit, f func(generation.Document) error) error {
	documents := make([]sdk.Document, len(wanted))
	for i, u := range wanted {
		documents[i] = sdk.Document{ID: u.ID, Text: u.Text, Meta: u.Meta}
	}
	chunks := make([][]sdk.Chunk, len(wanted))
	errs, err := w.chunks.Call(ctx, len(wanted), func(ctx context.Context, _ string, at []int) error {
		found, err := w.Chunker.Chunk(ctx, generation.Pick(documents, at))
		return generation.Spread(chunks, at, found, err)
	})
	if err != nil {
		return fmt.Errorf("cut into chunks: %w", err)
	}
	for i, u := range wanted {
		if errs[i] != nil {
			w.cutting[u.ID] = fmt.Errorf("cut into chunks: %w", errs[i])
			err = w.reject(u.ID, w.cutting[u.ID])
		} else {
			err = f(generation.Document{Unit: u, Chunks: chunks[i]})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// reject notes that a unit is unusable. A transient error ends the build instead.
func (w *walk) reject(id string, err error) error {
	if generation.Passes(err) {
		return err
	}
	if w.unusable == nil {
		w.unusable = map[string]error{}
	}
	w.unusable[id] = err
	return nil
}

// refusals holds the entries that the embedder or the store cannot take, by id.
type refusals struct {
	mu  sync.Mutex
	why map[string]error
}

func (r *refusals) add(id string, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.why == nil {
		r.why = map[string]error{}
	}
	r.why[id] = why
}

// take notes the rows of a batch that failed without the others. It returns an error of the whole batch, and a
// transient error of a row, since another try gets that row again.
func (r *refusals) take(batch []sdk.Entry, err error) error {
	var failed sdk.RowErrors
	if err == nil || !errors.As(err, &failed) {
		return err
	}
	for _, why := range failed {
		if generation.Passes(why) {
			return why
		}
	}
	for i, why := range failed {
		r.add(batch[i].ID, why)
	}
	return nil
}

// leaveOut reports the place of each unusable unit and entry. It returns the unusable entries whose earlier content
// is in the store. held is the number of entries before the build.
func (w *walk) leaveOut(stock *generation.Stock, held int) (stale []string, err error) {
	var invalid []generation.InvalidRow
	for id, why := range w.unusable {
		invalid = append(invalid, w.Source.At(id, why))
	}
	for id, why := range w.refused.why {
		unit, number := stock.UnitOf(id)
		if w.Chunker != nil {
			why = fmt.Errorf("chunk %d: %w", number, why)
		}
		invalid = append(invalid, w.Source.At(unit, why))
		if stock.Replaced(id) {
			stale = append(stale, id)
		}
	}
	r := &w.Report
	r.Added -= len(w.refused.why) - len(stale)
	r.Changed -= len(stale)
	r.Removed += len(stale)
	r.InvalidCount += len(invalid)
	slices.SortFunc(invalid, func(x, y generation.InvalidRow) int {
		return cmp.Or(cmp.Compare(x.Line, y.Line), cmp.Compare(x.Path, y.Path), cmp.Compare(x.Err.Error(), y.Err.Error()))
	})
	if held+r.Added-r.Removed == 0 {
		what := "row"
		if w.Block.Documents() != nil {
			what = "document"
		}
		err := fmt.Errorf("no %s of %s can be used", what, w.Block.Main().Path)
		if len(invalid) > 0 {
			err = fmt.Errorf("%w. The first error: %s", err, invalid[0])
		}
		return nil, &generation.SourceError{Range: w.Block.Main().Range, Err: err}
	}
	if len(invalid) == 0 {
		return nil, nil
	}
	r.Invalid = slices.Concat(r.Invalid, invalid)
	slices.SortStableFunc(r.Invalid, func(x, y generation.InvalidRow) int { return cmp.Compare(x.Line, y.Line) })
	r.Invalid = r.Invalid[:min(len(r.Invalid), generation.MaxInvalid)]
	w.note.Invalid = r.InvalidCount
	return stale, nil
}
