package build

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/racflow/racflow/engine/knowledge/enrich"
	"github.com/racflow/racflow/engine/knowledge/units"
	"github.com/racflow/racflow/sdk"
)

// walk is one way through units: to learn from their entries, or to store them.
type walk struct {
	*builder
	doing    string           // what is reported for each unit; empty: nothing
	unusable map[string]error // units, by id
	refused  refusals
}

// batches calls f with the entries of units, in batches of at most n entries and about
// stages.BatchBytes bytes of text. Only a unit of more than that is spread over
// several. Units that cannot be used are noted and left out. Where an enricher cannot
// continue, f still gets all that was complete before.
func (w *walk) batches(ctx context.Context, wanted []units.Unit, n int, f func(batch) error) error {
	w.Report.Unenriched, w.Report.FirstUnenriched = 0, units.InvalidRow{} // what an earlier walk found is found again
	chunk := func(ctx context.Context, f func(units.Document) error) error { return w.chunk(ctx, wanted, f) }
	b, far := batcher{delimiter: w.Block.Delimiter(), n: n, f: f}, w.measure(w.doing, wanted)
	err := w.Enrichers.Each(ctx, chunk, func(d units.Document, added []enrich.Additions) error {
		if err := w.Enrichers.CheckNames(d.Meta); err != nil {
			return err
		}
		if w.unenriched(d, added) {
			d.Hash = redo(d.Hash)
		}
		d.Hash = w.contentHash(d.Hash)
		var entries []sdk.Entry
		switch {
		case len(d.Chunks) == 0:
		case w.Chunker == nil:
			entries = []sdk.Entry{d.Unit}
		default:
			entries = d.Entries()
		}
		if w.doing != "" {
			w.Progress.Report(far.add(entries, d.ID))
		}
		return b.add(d.ID, entries, w.Enrichers.Add(entries, added))
	})
	if ended := new(enrich.EndedError); err != nil && !errors.As(err, &ended) {
		return err
	}
	return cmp.Or(b.flush(true), err)
}

// unenriched counts passages of which an addition is missing, and reports whether
// there are any.
func (w *walk) unenriched(d units.Document, added []enrich.Additions) bool {
	count, first, why := w.Enrichers.Unenriched(d, added)
	if count > 0 && w.Report.Unenriched == 0 {
		if w.Chunker != nil {
			why = fmt.Errorf("chunk %d: %w", first, why)
		}
		w.Report.FirstUnenriched = w.Source.At(d.ID, why)
	}
	w.Report.Unenriched += count
	return count > 0
}

// redo is a hash that no content has: a document that has it is done again.
func redo(hash []byte) []byte {
	sum := sha256.Sum256(append([]byte("bare\n"), hash...))
	return sum[:units.HashBytes]
}

// documentCount says how many documents the entries are made of; 0: they are rows.
func (w *walk) documentCount() int {
	if w.Chunker == nil && w.Block.Documents() == nil {
		return 0
	}
	return len(w.Source.Units) - len(w.unusable)
}
