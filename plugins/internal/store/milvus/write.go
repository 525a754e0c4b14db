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
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// This file writes. Changes wait in memory until the commit, which makes them in place. If they are too many
// to wait, they are made earlier. A change, with time going down:
//
//	claim             no other writer is at work
//	record: changing  from here on a change that is cut off is noticed
//	rows              inserted, put in the place of others, deleted: readers see them one by one
//	state             the note, and the statistics of the words
//	record            the change is whole
//	release the claim

// writer changes one collection, for one call at a time. Its methods may be
// called by several goroutines.
type writer struct {
	*view
	log *slog.Logger

	mu      sync.Mutex
	change  *change // nil: none since the last commit
	dropped bool    // an error undid changes and the caller may not know
	// written has the beginning of the keys of all rows, where the collection was empty when this writer began:
	// rows need not be looked for. nil: nobody knows.
	written map[uint64]bool
}

// undoTime is how long a writer may take to end a claim without a commit.
const undoTime = 5 * time.Second

// open drops what waits and looks at a table, which need not exist: the first change creates it. Of a change
// that was cut off it counts the rows, and returns no note: the engine then compares every entry.
func (w *writer) open(ctx context.Context, t *table.Table) (*known, []byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	exists, err := t.Exists(ctx)
	if err != nil {
		return nil, nil, err
	}
	w.rollback(ctx)
	k := empty(t, false)
	if exists {
		if err := t.Prepare(ctx); err != nil {
			return nil, nil, err
		}
		if k, err = look(ctx, t, nil); err != nil {
			return nil, nil, err
		}
	}
	note := slices.Clone(k.Note)
	if k.record.Changing {
		note = nil
		if _, busy := (&claim{table: t}).look(ctx); busy == nil {
			if err := k.recount(ctx); err != nil {
				return nil, nil, err
			}
		}
	}
	w.dropped, w.written = false, nil
	w.latest.Store(k)
	return k, note, nil
}

// begin claims the collection unless that is done, makes sure that nobody else wrote since this process read,
// and removes what killed writers left behind.
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
	if !base.onServer {
		t := *base.Table
		if err := t.Create(ctx); err != nil {
			return nil, err
		}
		if err := t.Prepare(ctx); err != nil {
			return nil, err
		}
		base = empty(&t, true)
		w.latest.Store(base)
	}
	mine, err := takeClaim(ctx, base.Table)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = mine.release(context.WithoutCancel(ctx))
		}
	}()
	last, err := readRecord(ctx, base.Table)
	if err == nil && (last.ID != base.record.ID || last.Changing && !base.counted) {
		err = sdk.Transient(fmt.Errorf("collection %q was changed by another process since it was opened: open it again", w.collection), 0)
	}
	if err == nil {
		err = tidy(ctx, base, append(last.keys(), mine.key()))
	}
	if err != nil {
		return nil, err
	}
	if base.record.Entries == 0 && !base.record.Changing {
		w.written = map[uint64]bool{}
	}
	next := *base
	next.Frequencies = maps.Clone(base.Frequencies)
	c := &change{base: last, next: &next, claim: mine, written: w.written, puts: map[string]table.Row{}, gone: map[string]bool{}}
	c.ctx, c.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	c.renewing.Go(c.renew)
	w.change = c
	return c, nil
}

// tidy removes the system rows that nobody uses.
func tidy(ctx context.Context, k *known, used []string) error {
	keys, err := k.SystemKeys(ctx)
	unused := slices.DeleteFunc(keys, func(key string) bool { return slices.Contains(used, key) })
	for part := range slices.Chunk(unused, table.LookUp) {
		err = errors.Join(err, k.Remove(ctx, table.Keys(part)))
	}
	return err
}

// put changes entries. Those that are too long for Milvus fail alone.
func (w *writer) put(ctx context.Context, entries []sdk.Entry) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	k, err := w.opened()
	if err != nil {
		return err
	}
	rows, long, err := k.CheckRows(entries)
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

// flushRows is how many new rows make it worth while that the server indexes its
// growing segments. It limits how often that may be asked for.
const flushRows = 10_000

// commit makes the changes.
func (w *writer) commit(ctx context.Context, note []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if k := w.latest.Load(); w.change == nil && k != nil && !w.dropped && k.record.Number > 0 && !k.record.Changing && bytes.Equal(note, k.Note) {
		return nil
	}
	c, err := w.begin(ctx)
	if err != nil {
		return err
	}
	if err := c.commit(ctx, note); err != nil {
		return w.undo(ctx, err)
	}
	w.latest.Store(c.next)
	w.end(ctx)
	if c.rows >= flushRows {
		if err := c.next.Flush(ctx); err != nil {
			w.log.Debug("the server did not flush", "collection", w.collection, "error", err)
		}
	}
	return nil
}

// drop removes the table that find returns from the server; nil: there is none. It
// removes none that another process writes.
func (w *writer) drop(ctx context.Context, find func(context.Context) (*table.Table, error)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rollback(ctx)
	t, err := find(ctx)
	if err == nil && t != nil {
		if err = t.Prepare(ctx); err == nil { // claims are rows of it
			_, err = takeClaim(ctx, t)
		}
		if err == nil {
			err = t.Drop(ctx)
		}
	}
	if err == nil {
		w.latest.Store(nil)
	}
	return err
}

// close drops what was not committed.
func (w *writer) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rollback(context.Background())
	w.latest.Store(nil)
}

// undo drops the change because of an error, and returns it with advice. Until the
// collection is opened again it takes no changes: a writer that resumed would commit only the later ones.
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
	// waitingBytes is how much waits in memory for the commit.
	waitingBytes = 64 << 20
	// sends is how many batches are on their way at a time. A server waits for its disk while it could already
	// read the next batch.
	sends = 3
)

// change is what was put and deleted since the last commit.
type change struct {
	base    record // the last one on the server
	next    *known // what the change leads to, so far
	claim   *claim
	written map[uint64]bool // of the writer

	puts  map[string]table.Row // by key, as gone, not on the server yet
	gone  map[string]bool
	bytes int  // of puts
	begun bool // something of the collection may have changed
	rows  int  // written

	ctx      context.Context // ends when another process has claimed the collection
	cancel   context.CancelCauseFunc
	renewing sync.WaitGroup
}

func (c *change) put(r table.Row) {
	delete(c.gone, r.Key)
	c.puts[r.Key] = r
	c.bytes += r.Size()
}

// renew prolongs the claim until the change ends or another process has a claim.
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

// apply makes the changes that wait.
func (c *change) apply(ctx context.Context) error {
	if len(c.puts)+len(c.gone) == 0 {
		return nil
	}
	there, err := c.countOut(ctx)
	if err != nil {
		return err
	}
	var inserts, upserts []table.Row
	for _, key := range slices.Sorted(maps.Keys(c.puts)) {
		r := c.puts[key]
		c.next.count(r.Counts, 1)
		if there[key] {
			upserts = append(upserts, r)
		} else {
			inserts = append(inserts, r)
		}
	}
	var gone []string
	for key := range there {
		if c.gone[key] {
			gone = append(gone, key)
		}
	}
	o, next := c.next.Options, &c.next.record
	formula := table.NewFormula(o.K1, o.B, next.average())
	if next.Lowest == 0 || formula.Average < next.Lowest {
		next.Lowest = formula.Average
	}
	if err := c.begin(ctx); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(sends)
	for part := range slices.Chunk(gone, table.LookUp) {
		g.Go(func() error { return c.next.Remove(ctx, table.Keys(part)) })
	}
	for _, part := range batches(inserts, o) {
		g.Go(func() error { return c.next.Insert(ctx, part, formula) })
	}
	for _, part := range batches(upserts, o) {
		g.Go(func() error { return c.next.Upsert(ctx, part, formula) })
	}
	c.rows += len(c.puts)
	c.bytes = 0
	clear(c.puts)
	clear(c.gone)
	return g.Wait()
}

// batches are the rows in parts that a server takes at a time.
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

// countOut finds the rows that are replaced or deleted, and counts them out.
func (c *change) countOut(ctx context.Context) (there map[string]bool, err error) {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(c.gone)) {
		if c.mayBeThere(key) {
			keys = append(keys, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.puts)) {
		if c.mayBeThere(key) {
			keys = append(keys, key)
		} else {
			c.written[start(key)] = true
		}
	}
	fields := []string{table.FieldKey}
	if c.next.Analyzer != nil {
		fields = append(fields, table.FieldDetails)
	}
	there = map[string]bool{}
	for part := range slices.Chunk(keys, table.LookUp) {
		rows, err := c.next.Query(ctx, table.NewestTable, table.Keys(part), fields...)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			there[r.Key] = true
			c.next.count(r.Counts, -1)
		}
	}
	return there, nil
}

func (c *change) mayBeThere(key string) bool { return c.written == nil || c.written[start(key)] }

// start is the beginning of a key as a number. Two rows with one are looked for, and that is all.
func start(key string) uint64 {
	n, err := strconv.ParseUint(key[:16], 16, 64)
	if err != nil {
		panic(err) // keys are hexadecimal
	}
	return n
}

// begin notes that rows change. Until the commit the record has the numbers of the one before.
func (c *change) begin(ctx context.Context) error {
	if err := c.claim.check(ctx); err != nil {
		return err
	}
	c.begun = true
	c.base.Changing, c.base.Lowest = true, c.next.record.Lowest
	c.base.renew()
	return c.base.write(ctx, c.next.Table)
}

// commit makes the changes and writes what tells readers of them.
func (c *change) commit(ctx context.Context, note []byte) error {
	if err := c.apply(ctx); err != nil {
		return err
	}
	next := c.next
	if c.begun {
		if n, err := next.Count(ctx, table.Entries); err != nil {
			return err
		} else if n < next.record.Entries { // a server that was killed may have lost some
			return table.LostRows(n, next.record.Entries)
		}
	}
	c.begun = true
	next.Note = slices.Clone(note)
	maps.DeleteFunc(next.Frequencies, func(_, n uint32) bool { return n == 0 })
	next.record.Number, next.record.Changing, next.counted = c.base.Number, false, false
	next.record.renew()
	if err := next.state.write(ctx, next.Table, &next.record); err != nil {
		return err
	}
	if err := c.claim.check(ctx); err != nil {
		return err
	}
	next.seen = time.Now()
	return next.record.write(ctx, next.Table)
}
