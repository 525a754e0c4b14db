package milvus

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// This file writes: what is put and deleted between two commits, and the
// commit. Milvus has no transactions, so every entry that is put becomes a row with
// the next sequence number, where no reader looks until the record of a commit, which
// is one row, counts it. Rows that a commit replaced or deleted are on its list of dead
// rows. A later writer removes them when no reader can need them any more, and removes
// what a killed writer left behind.
//
// Writers take turns; commit_turn.go says why no two of them commit over each other. A commit,
// with time going down:
//
//	writer                          server                     readers
//	  | read turns ------------------> 5 committed                |
//	  | claim turn 6 ----------------> ~turn-6-claim-H            | see 5
//	  | read turns <------------------ is the claim alone?        |
//	  | base 5 ----------------------> ~turn-6-base               |
//	  | read turns <------------------ still the highest?         |
//	  | remove what nothing needs ---> rows of gaps, old states   |
//	  | put entries in batches ------> rows 40, 41, ...           |
//	  | renew the claim every 8 s ---> ~turn-6-claim-H            |
//	  | find rows that are replaced    ...                        |
//	  | note, statistics, dead ------> ~state-6-0, ...            |
//	  | read turns <------------------ still the highest?         |
//	  | record ----------------------> ~turn-6-record             | see 6
//	  | read turns <------------------ still the highest: done    |
//	  | release the claim -----------> ~turn-6-claim-H            |
//
// The tests run many writers and readers by seeded schedules against a server in
// memory, which loses and delays calls; see TestSimulation.
//
// The words of a row are weighed with the average length at that time. The average
// moves with every commit; search.go says how searches allow for that.

// sends is how many batches are on their way at a time. A server waits for
// its disk while it could already read the next batch.
const sends = 3

// begin starts a transaction unless one is under way: it takes a turn, makes sure
// that nobody else wrote since this process read, and removes what a killed writer
// left behind.
func (w *Writer) begin(ctx context.Context) (_ *transaction, err error) {
	if w.staged != nil {
		if err := context.Cause(w.staged.ctx); err != nil {
			return nil, w.undo(ctx, err)
		}
		return w.staged, nil
	}
	s, err := w.View.Opened()
	if err != nil {
		return nil, err
	}
	if w.dropped {
		return nil, fmt.Errorf("collection %q lost its uncommitted changes to an earlier error: open it again and make them anew", s.Collection)
	}
	if !s.OnServer {
		t := *s.Table
		if err := t.Create(ctx); err != nil {
			return nil, err
		}
		if err := t.Prepare(ctx); err != nil {
			return nil, err
		}
		s = EmptySnapshot(&t, true)
		w.View.Set(s)
	}
	mine, err := takeTurn(ctx, s.Table)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = mine.release(context.WithoutCancel(ctx))
		}
	}()
	if !mine.base.Same(&s.Record) {
		return nil, sdk.Transient(fmt.Errorf("collection %q was changed by another process since it was opened: open it again", s.Collection), 0)
	}
	base := after(*s, mine.Turn)
	next := EmptySnapshot(base.Table, true)
	next.Record = base.Record
	maps.Copy(next.Frequencies, base.Frequencies)
	maps.Copy(next.Dead, base.Dead)
	if err := tidy(ctx, base, mine, next); err != nil {
		return nil, err
	}
	tx := &transaction{base: base, next: next, turn: mine, latest: map[int64]int64{}}
	tx.sending.SetLimit(sends)
	tx.ctx, tx.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	tx.renewing.Go(tx.renew)
	w.staged = tx
	return tx, nil
}

// rowsOfTurn is more rows than a turn can write.
const rowsOfTurn = 1 << 32

// after is the base of a turn, without the sequence numbers that the turns in between
// may have used: a row of theirs that comes late must not count.
func after(base Snapshot, turn int64) *Snapshot {
	r := &base.Record
	if unfinished := turn - r.Commit - 1; unfinished > 0 {
		next := r.Next + unfinished*rowsOfTurn
		r.Gaps = append(slices.Clone(r.Gaps), Gap{From: r.Next, To: next})
		r.Next = next
	}
	return &base
}

// renew prolongs the turn's lease until the transaction ends or another process has
// claimed a turn.
func (tx *transaction) renew() {
	for support.SleepFor(tx.ctx, leaseRenew) == nil {
		_, err := tx.turn.check(tx.ctx, false)
		if err == nil {
			err = tx.turn.renew(tx.ctx)
		}
		if sdk.CodeOf(err) == sdk.CodeTransient {
			tx.cancel(err)
		}
	}
}

// flushRows is how many new rows make it worth while that the server indexes its
// growing segments. It limits how often that may be asked for.
const flushRows = 10_000

// Commit makes the staged changes visible. Everything else is on the server before the
// record, which is one row.
func (w *Writer) Commit(ctx context.Context, note []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.View.Latest(); w.staged == nil && s != nil && !w.dropped && s.Record.Commit > 0 && bytes.Equal(note, s.Note) {
		return nil
	}
	tx, err := w.begin(ctx)
	if err != nil {
		return err
	}
	t := tx.base.Table
	next, err := tx.commit(ctx, note)
	if err != nil {
		return w.undo(ctx, err)
	}
	w.end()
	w.View.Set(next)
	if err := tx.turn.release(ctx); err != nil {
		w.Log.Warn("could not end the turn of the writer; it ends by itself", "collection", t.Collection, "error", err)
	}
	if tx.rows() >= flushRows {
		if err := t.Flush(ctx); err != nil {
			w.Log.Debug("the server did not flush", "collection", t.Collection, "error", err)
		}
	}
	return nil
}

// commit returns the snapshot that it leads to.
func (tx *transaction) commit(ctx context.Context, note []byte) (*Snapshot, error) {
	if err := tx.supersede(ctx); err != nil {
		return nil, err
	}
	if err := tx.verify(ctx); err != nil {
		return nil, err
	}
	next := tx.next
	next.Note = slices.Clone(note)
	maps.DeleteFunc(next.Frequencies, func(_, n uint32) bool { return n == 0 })
	rows := next.State.Rows(tx.turn.Turn)
	next.Record.Commit, next.Record.Holder, next.Record.Parts = tx.turn.Turn, tx.turn.Holder, len(rows)
	if err := tx.base.PutSystem(ctx, rows...); err != nil {
		return nil, err
	}
	if _, err := tx.turn.check(ctx, false); err != nil {
		return nil, err
	}
	next.Record.Time = time.Now().Add(tx.base.Server.Config.RetryTime).Unix()
	err := tx.turn.put(ctx, next.Record, "record")
	next.Seen = time.Now()
	// It counts once it is there and nobody has claimed a higher turn, whatever was
	// replied.
	looking, cancel := context.WithTimeout(context.WithoutCancel(ctx), tx.base.Server.Config.CallTimeout)
	defer cancel()
	if _, missing := tx.turn.check(looking, true); missing != nil {
		return nil, errUncertain{cmp.Or(err, missing)}
	}
	return next, nil
}

// errUncertain is the error of a commit that may have been made all the same.
type errUncertain struct{ error }

func (e errUncertain) Unwrap() error { return e.error }

// transaction is what was written since the last commit, its base.
type transaction struct {
	base    *Snapshot
	next    *Snapshot // what the commit leads to, so far
	turn    *turn
	pending []table.Row // not on the server yet
	bytes   int         // of the pending rows

	// latest has the last thing that happened to an id, by its hash: the row that
	// was put, or deleted.
	latest     map[int64]int64
	superseded []int64 // rows of the transaction that later ones replaced

	sending  errgroup.Group
	ctx      context.Context // of what is sent: a call returns before all is there
	cancel   context.CancelCauseFunc
	renewing sync.WaitGroup
}

// deleted stands in latest for a row.
const deleted = -1

// replace notes the last thing that happened to an id.
func (tx *transaction) replace(id string, now int64) {
	hash := table.IDHash(id)
	if before, ok := tx.latest[hash]; ok && before != deleted {
		tx.superseded = append(tx.superseded, before)
	}
	tx.latest[hash] = now
}

// rows are how many were put, pending ones too.
func (tx *transaction) rows() int { return int(tx.next.Record.Next - tx.base.Record.Next) }

// put adds an entry, and sends the pending ones once they are enough.
func (tx *transaction) put(r table.Row) error {
	record := &tx.next.Record
	r.Key, r.Sequence = table.RowKey(record.Next), record.Next
	tx.count(r.Counts, 1)
	tx.replace(r.Entry.ID, record.Next)
	record.Next++
	tx.pending = append(tx.pending, r)
	tx.bytes += r.Size()
	if o := tx.base.Options; len(tx.pending) < o.BatchRows && tx.bytes < o.BatchBytes {
		return nil
	}
	return tx.send()
}

// count counts an entry in or, with sign -1, out.
func (tx *transaction) count(c table.Counts, sign int) {
	tx.next.Record.Entries += sign
	tx.next.Record.Words += int64(sign * c.Length)
	for _, w := range c.All() {
		tx.next.Frequencies[w.Word] += uint32(sign) // of -1 it wraps around: one less
	}
}

// send begins to write the pending rows, once few enough others are on their
// way. Their words are weighed with the average length so far: at a first build
// the final one is not known yet.
func (tx *transaction) send() error {
	if err := context.Cause(tx.ctx); err != nil {
		return err // of rows that were sent before, or another writer has a turn
	}
	if len(tx.pending) == 0 {
		return nil
	}
	o, record := tx.base.Options, &tx.next.Record
	rows, formula := tx.pending, table.NewFormula(o.K1, o.B, record.Average())
	tx.sending.Go(func() error {
		err := tx.base.Insert(tx.ctx, rows, formula)
		if err != nil {
			tx.cancel(err)
		}
		return err
	})
	if record.Lowest == 0 || formula.Average < record.Lowest {
		record.Lowest = formula.Average
	}
	tx.pending, tx.bytes = nil, 0
	return nil
}

// flush sends the pending rows and waits until all rows are there.
func (tx *transaction) flush(ctx context.Context) error {
	if err := tx.send(); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { tx.cancel(ctx.Err()) })()
	if err := tx.sending.Wait(); err != nil {
		return err
	}
	return context.Cause(tx.ctx)
}
