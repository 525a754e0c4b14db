package transaction

import (
	"context"
	"fmt"
	"slices"

	"github.com/racflow/racflow/plugins/store/milvus/internal/snapshot"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/backoff"
)

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
		s = snapshot.Empty(&t, true)
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
	tidied, err := tidy(ctx, base, mine)
	if err != nil {
		return nil, err
	}
	next := base.Record.Next
	tx := &transaction{base: base, turn: mine, tidied: tidied, first: next, next: next, latest: map[int64]int64{}, frequencies: map[uint32]int64{}}
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
func after(base snapshot.Snapshot, turn int64) *snapshot.Snapshot {
	r := &base.Record
	if unfinished := turn - r.Commit - 1; unfinished > 0 {
		next := r.Next + unfinished*rowsOfTurn
		r.Gaps = append(slices.Clone(r.Gaps), snapshot.Gap{From: r.Next, To: next})
		r.Next = next
	}
	return &base
}

// renew prolongs the turn's lease until the transaction ends or somebody else has
// claimed a turn.
func (tx *transaction) renew() {
	for backoff.Sleep(tx.ctx, leaseRenew) == nil {
		_, err := tx.turn.check(tx.ctx)
		if err == nil {
			err = tx.turn.renew(tx.ctx)
		}
		if sdk.CodeOf(err) == sdk.CodeTransient {
			tx.cancel(err)
		}
	}
}
