package knowledge

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/sdk"
)

const (
	embedBatch = 256             // rows per call of the embedder, at most
	batchBytes = 8 << 20         // of text per call, at most: it has to fit a message
	inFlight   = 2               // batches under way: one is embedded while one is stored
	scanPage   = 4096            // entries per page of a scan
	checkpoint = 5 * time.Second // after which a first build is committed, to go on from after a kill
)

// builder brings one store in step with its source.
type builder struct {
	*Knowledge
	stages  Stages
	options Options

	rows      *rows // of the source; nil: not read yet
	note      note
	previous  string            // note.Source before this build
	old       map[string]stored // what the store holds
	changed   map[string]bool   // entries of the store that the source has another content for
	refused   refusals
	fresh     bool // nothing was ever committed
	completed bool // this build is the one that completed the generation
}

// stored is what is known of an entry in the store.
type stored struct {
	label string
	hash  []byte
}

func (b *builder) build(ctx context.Context) error {
	schema := sdk.Schema{Dimension: b.embedder.Dimension(), Analyzer: b.block.Analyzer}
	have, err := b.store.Open(ctx, b.main, schema)
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	if len(have.Note) > 0 {
		n, ours := readNote(have.Note)
		if !ours {
			return fmt.Errorf("collection %s was not made by racflow: its note is not readable; keep the knowledge in another place", b.main)
		}
		b.note = n
	}
	b.fresh, b.previous = len(have.Note) == 0, b.note.Source
	if b.note.State != nil {
		if b.embedder, err = b.stages.Embedder(ctx, b.note.State); err != nil {
			return err
		}
	}
	digest, err := source.Digest(b.block.Source.Path)
	if err != nil {
		return &SourceError{b.block.Source.Range, err}
	}
	changed := map[string]bool{} // labels whose centroid must be made again
	if b.note.Complete && digest != "" && digest == b.note.Source && b.note.Faults == 0 {
		b.Report.Unchanged = true
	} else if err := b.update(ctx, changed); err != nil {
		return err
	}
	b.Report.Entries = have.Entries + b.Report.Added - b.Report.Removed
	if b.options.Plan {
		return nil
	}
	return b.buildCentroids(ctx, changed)
}

// update redoes what differs between source and store.
func (b *builder) update(ctx context.Context, changedLabels map[string]bool) error {
	if b.rows == nil { // another try does not read standard input again
		var err error
		if b.rows, err = b.read(); err != nil {
			return &SourceError{b.block.Source.Range, err}
		}
	}
	b.Report.Faults, b.Report.FaultCount = b.rows.faults, b.rows.count
	entries := slices.Clone(b.rows.entries)
	var err error
	if b.old, err = b.stored(ctx); err != nil {
		return err
	}
	refit := b.mustFit(len(entries))
	if !b.options.Plan {
		if err := b.begin(ctx); err != nil {
			return err
		}
		// Nothing is changed by this, but now no other process can write.
		if err := written("lock", b.store.Delete(ctx, b.main, nil)); err != nil {
			return err
		}
		if refit {
			if err := b.fit(ctx, entries); err != nil {
				return err
			}
		}
	}
	b.stamp(entries)
	todo := b.differences(entries, refit, changedLabels)
	var gone []string
	for id, old := range b.old { // differences took out what the source still has
		gone = append(gone, id)
		changedLabels[old.label] = true
	}
	slices.Sort(gone)
	b.Report.Removed = len(gone)
	if b.options.Plan {
		return nil
	}
	first := !b.note.Complete
	b.note.Source, b.note.Complete, b.note.Faults = b.rows.digest, false, b.rows.count
	b.note.describe(b.block)
	if err := b.put(ctx, todo, first); err != nil {
		return err
	}
	stale, err := b.leaveOut()
	if err != nil {
		return err
	}
	if err := written("delete", b.store.Delete(ctx, b.main, append(gone, stale...))); err != nil {
		return err
	}
	b.note.Complete = true
	if first {
		b.note.Built = now()
	}
	b.completed = first
	return b.commit(ctx)
}

// begin commits a note to a generation that has none, so that it is listed as
// incomplete however its first build ends.
func (b *builder) begin(ctx context.Context) error {
	if !b.fresh {
		return nil
	}
	b.note.Source = b.rows.digest
	b.note.describe(b.block)
	return b.commit(ctx)
}

func (b *builder) read() (*rows, error) {
	r, err := readSource(b.block.Source, b.options.Stdin)
	if err != nil {
		return nil, err
	}
	if len(r.entries) == 0 {
		err = fmt.Errorf("%s holds no usable row: below the header a row needs a text", b.block.Source.Path)
		if len(r.faults) > 0 {
			err = fmt.Errorf("%w. The first fault: %s", err, r.faults[0])
		}
		return nil, err
	}
	return r, nil
}

// stamp makes the hashes depend on what the embedder was fitted to, so that
// vectors of different fits never pass for each other, whenever a build was
// cut off.
func (b *builder) stamp(entries []sdk.Entry) {
	if b.note.State == nil {
		return
	}
	fitted := sha256.Sum256(b.note.State)
	for i := range entries {
		sum := sha256.Sum256(append(fitted[:], entries[i].Hash...))
		entries[i].Hash = sum[:16]
	}
}

// stored lists what the main collection holds.
func (b *builder) stored(ctx context.Context) (map[string]stored, error) {
	all := map[string]stored{}
	err := scan(ctx, b.store, b.main, sdk.Scan{}, func(e sdk.Entry) {
		all[e.ID] = stored{e.Label, e.Hash}
	})
	return all, err
}

// scan calls f with every entry that s asks for.
func scan(ctx context.Context, store Store, collection string, s sdk.Scan, f func(sdk.Entry)) error {
	s.Limit = scanPage
	for {
		page, err := store.Scan(ctx, collection, s)
		if err != nil {
			return fmt.Errorf("scan: %w", err)
		}
		for _, e := range page.Entries {
			f(e)
		}
		if page.Next == "" {
			return nil
		}
		s.After = page.Next
	}
}

// mustFit reports whether an embedder that learns from the knowledge must do
// so: the first time, and when the knowledge has grown or shrunk by a fifth
// since. Between those its vectors stay comparable, so that a changed row
// redoes one row.
func (b *builder) mustFit(rows int) bool {
	return b.embedder.Fits() && (b.note.State == nil || rows*5 < b.note.Fitted*4 || rows*5 > b.note.Fitted*6)
}

// fit lets a fresh embedder learn from the entries (Fit adds to what one
// knows) and goes on with one that has the outcome.
func (b *builder) fit(ctx context.Context, entries []sdk.Entry) (err error) {
	if b.embedder, err = b.stages.Embedder(ctx, nil); err != nil {
		return err
	}
	for batch := range batches(entries, scanPage) {
		if err := b.embedder.Fit(ctx, passages(batch)); err != nil {
			return fmt.Errorf("fit %s: %w", b.block.Embed.Use, err)
		}
	}
	if b.note.State, err = b.embedder.State(); err != nil {
		return fmt.Errorf("fit %s: %w", b.block.Embed.Use, err)
	}
	b.note.Fitted = len(entries)
	b.embedder, err = b.stages.Embedder(ctx, b.note.State)
	return err
}

// differences returns the entries to store. It takes those that the source
// has out of b.old.
func (b *builder) differences(entries []sdk.Entry, all bool, changedLabels map[string]bool) []sdk.Entry {
	var todo []sdk.Entry
	b.changed = map[string]bool{}
	for _, e := range entries {
		old, known := b.old[e.ID]
		delete(b.old, e.ID)
		switch {
		case !known:
			b.Report.Added++
		case all || !bytes.Equal(old.hash, e.Hash):
			b.Report.Changed++
			b.changed[e.ID] = true
			changedLabels[old.label] = true
		default:
			continue
		}
		changedLabels[e.Label] = true
		todo = append(todo, e)
	}
	return todo
}

// put embeds and stores entries. A first build is committed now and then, to
// go on from after a kill; later changes appear all at once.
func (b *builder) put(ctx context.Context, entries []sdk.Entry, first bool) error {
	embedded := make(chan []sdk.Entry, inFlight)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(embedded)
		for batch := range batches(entries, embedBatch) {
			vectors, err := b.embedder.Embed(ctx, sdk.RolePassage, passages(batch))
			failed, err := b.refused.take(batch, err)
			if err != nil {
				return fmt.Errorf("embed: %w", err)
			}
			for i := range batch {
				batch[i].Vector = vectors[i]
			}
			batch = without(batch, failed)
			select {
			case embedded <- batch:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	g.Go(func() error {
		done, committed := 0, time.Now()
		for batch := range embedded {
			if _, err := b.refused.take(batch, b.store.Put(ctx, b.main, batch)); err != nil {
				return written("store", err)
			}
			done += len(batch)
			if b.options.Progress != nil {
				b.options.Progress(done, len(entries))
			}
			if first && time.Since(committed) > checkpoint {
				if err := b.commit(ctx); err != nil {
					return err
				}
				committed = time.Now()
			}
		}
		return nil
	})
	return g.Wait()
}

func (b *builder) commit(ctx context.Context) error {
	b.note.Changed = now()
	n, err := json.Marshal(b.note)
	if err != nil {
		return err
	}
	return written("commit", b.store.Commit(ctx, b.main, n))
}

// batches cuts entries into batches of at most n entries and about batchBytes
// bytes of text.
func batches(entries []sdk.Entry, n int) iter.Seq[[]sdk.Entry] {
	return func(yield func([]sdk.Entry) bool) {
		for len(entries) > 0 {
			size, end := 0, 0
			for end < min(n, len(entries)) && (end == 0 || size < batchBytes) {
				size += len(entries[end].Text) + len(entries[end].Context)
				end++
			}
			if !yield(entries[:end]) {
				return
			}
			entries = entries[end:]
		}
	}
}

// passages are the texts that are embedded: an entry's context stands before
// its text.
func passages(entries []sdk.Entry) []string {
	all := make([]string, len(entries))
	for i, e := range entries {
		if all[i] = e.Text; e.Context != "" {
			all[i] = e.Context + "\n" + e.Text
		}
	}
	return all
}
