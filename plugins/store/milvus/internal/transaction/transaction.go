package transaction

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/plugins/store/milvus/internal/bm25"
	"github.com/racflow/racflow/plugins/store/milvus/internal/row"
	"github.com/racflow/racflow/plugins/store/milvus/internal/snapshot"
	"github.com/racflow/racflow/sdk"
)

// transaction is what was written since the last commit, its base.
type transaction struct {
	base *snapshot.Snapshot
	turn *turn
	// tidied reports that the dead rows of earlier commits are gone.
	tidied  bool
	first   int64     // sequence number
	next    int64     // sequence number
	pending []row.Row // not on the server yet
	bytes   int       // of the pending rows
	rows    int       // put so far, pending ones too

	// latest has the last thing that happened to an id, by its hash: the row that
	// was put, or deleted.
	latest     map[int64]int64
	superseded []int64 // rows of the transaction that later ones replaced

	// The changes of the statistics.
	entries     int
	words       int64
	frequencies map[uint32]int64
	// The averages that words were weighed with; 0: none yet.
	lowest, highest float64

	sending  errgroup.Group
	ctx      context.Context // of what is sent: a call returns before all is there
	cancel   context.CancelCauseFunc
	renewing sync.WaitGroup
}

// deleted stands in latest for a row.
const deleted = -1

// replace notes the last thing that happened to an id.
func (tx *transaction) replace(id string, now int64) {
	hash := row.IDHash(id)
	if before, ok := tx.latest[hash]; ok && before != deleted {
		tx.superseded = append(tx.superseded, before)
	}
	tx.latest[hash] = now
}

// put adds an entry.
func (tx *transaction) put(e sdk.Entry, meta []byte) error {
	r := tx.newRow(e, meta, tx.next)
	tx.count(r.Counts, 1)
	tx.entries++
	tx.replace(e.ID, tx.next)
	return tx.add(r)
}

// newRow is the next row, for an entry at a position.
func (tx *transaction) newRow(e sdk.Entry, meta []byte, position int64) row.Row {
	r := row.Row{Key: row.Key(position, tx.next), Sequence: tx.next, Entry: e, Meta: meta}
	if a := tx.base.Analyzer; a != nil {
		r.Counts = bm25.CountWords(*a, e.Context, e.Text)
	}
	return r
}

// add makes a row pending, and sends those once they are enough.
func (tx *transaction) add(r row.Row) error {
	tx.next++
	tx.rows++
	tx.pending = append(tx.pending, r)
	tx.bytes += r.Size()
	if o := tx.base.Options; len(tx.pending) < o.BatchRows && tx.bytes < o.BatchBytes {
		return nil
	}
	return tx.send()
}

// count counts a text in or, with sign -1, out.
func (tx *transaction) count(c bm25.Counts, sign int64) {
	tx.words += sign * int64(c.Length)
	for _, w := range c.All() {
		tx.frequencies[w.Word] += sign
	}
}

// average is the average length with what is staged.
func (tx *transaction) average() float64 {
	r := tx.base.Record
	r.Entries += tx.entries
	r.Words += tx.words
	return r.Average()
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
	o := tx.base.Options
	rows, formula := tx.pending, bm25.NewFormula(o.K1, o.B, tx.average())
	tx.sending.Go(func() error {
		err := tx.base.Insert(tx.ctx, rows, formula)
		if err != nil {
			tx.cancel(err)
		}
		return err
	})
	if tx.lowest == 0 || formula.Average < tx.lowest {
		tx.lowest = formula.Average
	}
	tx.highest = max(tx.highest, formula.Average)
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
