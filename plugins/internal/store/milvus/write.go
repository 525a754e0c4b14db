package milvus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/plugins/internal/store/milvus/entries"
	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// This file writes. Changes stay in memory until the commit, which writes them in place; too many changes are written
// earlier. The steps of a change, in order:
//
//	claim             no other writer is at work
//	record: changing  from here on, an interrupted change is detected
//	rows              inserted, replaced, deleted: readers see each one at once
//	note, record      the change is complete
//	release the claim

// writer changes one collection, one call at a time. Its methods may be called by several goroutines.
type writer struct {
	collection string
	books      func(ctx context.Context, make bool) (*table.Table, error) // nil result: there are none
	log        *slog.Logger
	latest     atomic.Pointer[known] // nil: not open

	mu      sync.Mutex
	change  *change // nil: none since the last commit
	dropped bool    // an error undid changes, and the caller may not know it
	// written holds the first digits of the keys of all rows, if the collection was empty when this writer began.
	// Rows with other keys are then inserted. nil: unknown.
	written map[uint64]bool
}

// undoTime is the time limit for releasing a claim without a commit.
const undoTime = 5 * time.Second

// opened returns what is known of the collection.
func (w *writer) opened() (*known, error) {
	if k := w.latest.Load(); k != nil {
		return k, nil
	}
	return nil, sdk.Invalid(fmt.Errorf("collection %q is not open", w.collection))
}

// open drops pending changes and examines a table. The table need not exist: the first change creates it. After an
// interrupted change, open counts the rows and returns no note. The engine then compares every entry.
func (w *writer) open(ctx context.Context, t *table.Table) (c sdk.Collection, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	exists, err := t.Exists(ctx)
	if err != nil {
		return c, err
	}
	w.rollback(ctx)
	books, err := w.books(ctx, false)
	if err != nil {
		return c, err
	}
	k := &known{Table: t}
	if k.record, k.note, err = (book{books, w.collection}).readLast(ctx); err != nil {
		return c, err
	}
	c.Dimension = t.Schema.Dimension
	if exists {
		if err := t.Prepare(ctx); err != nil {
			return c, err
		}
		c.Entries, c.Note = k.record.Entries, slices.Clone(k.note)
		if k.record.Changing || k.record.Number == 0 {
			c.Note = nil
			if c.Entries, err = k.Count(ctx); err != nil {
				return c, err
			}
		}
	}
	k.empty = c.Entries == 0
	if k.reads, err = entries.Own(t); err != nil {
		return c, err
	}
	w.dropped, w.written = false, nil
	w.latest.Store(k)
	return c, nil
}

// begin claims the collection unless it is claimed already. It checks that nobody else has written since this process
// read, and removes leftovers of killed writers.
func (w *writer) begin(ctx context.Context) (_ *change, err error) {
	if w.change != nil {
		if err := context.Cause(w.change.ctx); err != nil {
			return nil, w.undo(ctx, err)
		}
		return w.change, nil
	}
	base, err := w.opened()
	if err != nil {
		return nil, err
	}
	if w.dropped {
		return nil, fmt.Errorf("collection %q lost its uncommitted changes to an earlier error: open it again and make them anew", w.collection)
	}
	t := *base.Table
	if !t.OnServer {
		if err := t.Create(ctx); err != nil {
			return nil, err
		}
		if err := t.Prepare(ctx); err != nil {
			return nil, err
		}
	}
	books, err := w.books(ctx, true)
	if err != nil {
		return nil, err
	}
	b := book{books, w.collection}
	mine, err := takeClaim(ctx, b)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = mine.release(context.WithoutCancel(ctx))
		}
	}()
	last, err := b.readRecord(ctx)
	if err == nil && last.ID != base.record.ID {
		err = sdk.Transient(fmt.Errorf("collection %q was changed by another process since it was opened: open it again", w.collection), 0)
	}
	if err == nil {
		err = b.keep(ctx, append(last.keys(b), mine.key())...)
	}
	if err != nil {
		return nil, err
	}
	if base.empty {
		w.written = map[uint64]bool{}
	}
	c := &change{Table: &t, book: b, record: last, claim: mine, written: w.written, puts: map[string]table.Row{}, gone: map[string]bool{}}
	c.ctx, c.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	c.renewing.Go(c.renew)
	w.change = c
	return c, nil
}

// put changes entries. If some are too long for Milvus, only these fail.
func (w *writer) put(ctx context.Context, given []sdk.Entry) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	k, err := w.opened()
	if err != nil {
		return err
	}
	rows, long, err := k.CheckRows(given)
	if err != nil {
		return err
	}
	c, err := w.begin(ctx)
	if err != nil {
		return err
	}
	for _, r := range rows {
		c.put(r)
		if c.bytes < waitingBytes {
			continue
		}
		if err := c.apply(ctx); err != nil {
			return w.undo(ctx, err)
		}
	}
	if len(long) > 0 {
		return long
	}
	return nil
}

// remove removes entries.
func (w *writer) remove(ctx context.Context, ids []string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	c, err := w.begin(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		key := table.RowKey(id)
		delete(c.puts, key)
		c.gone[key] = true
	}
	return nil
}

// commit writes the changes.
func (w *writer) commit(ctx context.Context, note []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if k := w.latest.Load(); w.change == nil && k != nil && !w.dropped && k.OnServer && k.record.Number > 0 && !k.record.Changing && bytes.Equal(note, k.note) {
		return nil
	}
	c, err := w.begin(ctx)
	if err != nil {
		return err
	}
	if err := c.commit(ctx, note); err != nil {
		return w.undo(ctx, err)
	}
	reads, err := entries.Own(c.Table)
	if err != nil {
		return err
	}
	w.latest.Store(&known{Table: c.Table, reads: reads, record: c.record, note: slices.Clone(note), empty: c.record.Entries == 0})
	w.end(ctx)
	return nil
}

// drop removes the table that find returns; nil: there is none. It does not remove a table that another process is
// writing.
func (w *writer) drop(ctx context.Context, find func(context.Context) (*table.Table, error)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rollback(ctx)
	t, err := find(ctx)
	if err != nil {
		return err
	}
	if t != nil {
		books, err := w.books(ctx, true)
		if err != nil {
			return err
		}
		b := book{books, w.collection}
		mine, err := takeClaim(ctx, b)
		if err == nil {
			err = errors.Join(b.keep(ctx, mine.key()), t.Drop(ctx), mine.release(ctx))
		}
		if err != nil {
			return err
		}
	}
	w.latest.Store(nil)
	return nil
}

// close drops uncommitted changes.
func (w *writer) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rollback(context.Background())
	w.latest.Store(nil)
}

// undo drops the change because of an error, and returns the error with advice. The collection then takes no changes
// until it is opened again: otherwise a writer that continued would commit only the later changes.
func (w *writer) undo(ctx context.Context, cause error) error {
	state := "the collection is as it was at the last commit"
	if w.change.begun {
		state = "a part of the change may be there: build again, which compares every entry"
	}
	w.rollback(ctx)
	w.dropped = true
	err := fmt.Errorf("write collection %q: %w; %s", w.collection, cause, state)
	if errors.Is(cause, context.Canceled) {
		return &sdk.Error{Code: sdk.CodeCancelled, Err: err}
	}
	return err
}

// rollback drops the change, if there is one.
func (w *writer) rollback(ctx context.Context) {
	if w.change == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	w.end(ctx)
}

// end ends the change and its claim.
func (w *writer) end(ctx context.Context) {
	c := w.change
	w.change = nil
	c.cancel(errors.New("the change has ended"))
	c.renewing.Wait()
	if err := c.claim.release(ctx); err != nil {
		w.log.Warn("could not end the claim of the writer; it ends by itself", "collection", w.collection, "error", err)
	}
}

const (
	// waitingBytes is how many bytes of changes stay in memory until the commit.
	waitingBytes = 32 << 20
	// sends is how many batches are sent at a time. While a server waits for its disk, it can already read the next
	// batch.
	sends = 3
)

// change holds the puts and deletes since the last commit.
type change struct {
	*table.Table
	book    book
	record  record // the last one on the server
	claim   *claim
	written map[uint64]bool // the writer's map

	puts  map[string]table.Row // by key; like gone, not on the server yet
	gone  map[string]bool
	bytes int  // of puts
	begun bool // rows on the server may have changed

	ctx      context.Context // ends when another process has claimed the collection
	cancel   context.CancelCauseFunc
	renewing sync.WaitGroup
}

func (c *change) put(r table.Row) {
	delete(c.gone, r.Key)
	c.puts[r.Key] = r
	c.bytes += r.Size()
}

// renew extends the claim until the change ends or another process has a claim.
func (c *change) renew() {
	for support.SleepFor(c.ctx, leaseRenew) == nil {
		err := c.claim.check(c.ctx)
		if err == nil {
			err = c.claim.renew(c.ctx)
		}
		if sdk.CodeOf(err) == sdk.CodeTransient {
			c.cancel(err)
		}
	}
}

// apply writes the pending changes.
func (c *change) apply(ctx context.Context) error {
	if len(c.puts)+len(c.gone) == 0 {
		return nil
	}
	if err := c.mark(ctx); err != nil {
		return err
	}
	for key := range c.gone {
		delete(c.written, start(key))
	}
	var inserts, upserts []table.Row
	for _, key := range slices.Sorted(maps.Keys(c.puts)) {
		if c.written == nil || c.written[start(key)] {
			upserts = append(upserts, c.puts[key])
		} else {
			inserts = append(inserts, c.puts[key])
			c.written[start(key)] = true
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(sends)
	for part := range slices.Chunk(slices.Collect(maps.Keys(c.gone)), table.LookUp) {
		g.Go(func() error { return c.Remove(ctx, table.Keys(part)) })
	}
	for _, part := range batches(inserts, c.Options) {
		g.Go(func() error { return c.Insert(ctx, part) })
	}
	for _, part := range batches(upserts, c.Options) {
		g.Go(func() error { return c.Upsert(ctx, part) })
	}
	c.bytes = 0
	clear(c.puts)
	clear(c.gone)
	return g.Wait()
}

// start returns the first digits of a key as a number. If two rows have the same number, the second is written as a
// replacement.
func start(key string) uint64 {
	n, err := strconv.ParseUint(key[:16], 16, 64)
	if err != nil {
		panic(err) // keys are hexadecimal
	}
	return n
}

// mark records that rows are changing.
func (c *change) mark(ctx context.Context) error {
	if err := c.claim.check(ctx); err != nil || c.begun {
		return err
	}
	c.begun = true
	c.record.Changing = true
	c.record.renew()
	return c.record.write(ctx, c.book)
}

// batches divides the rows into parts that a server accepts at a time.
func batches(rows []table.Row, o table.Options) (all [][]table.Row) {
	from, bytes := 0, 0
	for i := range rows {
		if bytes += rows[i].Size(); i+1-from == o.BatchRows || bytes >= o.BatchBytes || i+1 == len(rows) {
			all = append(all, rows[from:i+1])
			from, bytes = i+1, 0
		}
	}
	return all
}

// commit writes the changes and records that they are complete.
func (c *change) commit(ctx context.Context, note []byte) (err error) {
	if err := c.apply(ctx); err != nil {
		return err
	}
	if c.record.Entries, err = c.Count(ctx); err != nil {
		return err
	}
	if n := len(c.written); c.record.Entries < n { // as a killed writer may leave it
		return sdk.Transient(fmt.Errorf("the server has %d of %d rows that were written: it lost some", c.record.Entries, n), 0)
	}
	c.begun = true
	c.record.Changing = false
	c.record.renew()
	if err := c.record.writeNote(ctx, c.book, note); err != nil {
		return err
	}
	if err := c.claim.check(ctx); err != nil {
		return err
	}
	return c.record.write(ctx, c.book)
}
