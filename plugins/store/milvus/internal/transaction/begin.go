package transaction

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/racflow/racflow/plugins/store/milvus/internal/snapshot"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/backoff"
)

// sends is how many batches are on their way at a time. A server waits for
// its disk while it could already read the next batch.
const sends = 3

// begin starts a transaction unless one is under way: it takes the lease, makes
// sure that nobody else wrote since this process read, and removes what a
// killed writer left behind.
func (w *Writer) begin(ctx context.Context) (_ *transaction, err error) {
	if w.staged != nil {
		if err := w.staged.stillHeld(); err != nil {
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
	mine, err := takeLease(ctx, s.Table)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = mine.release(context.WithoutCancel(ctx), s.Table)
		}
	}()
	now, err := snapshot.Read(ctx, s.Table, s)
	if err != nil {
		return nil, err
	}
	if now.Record.Commit != s.Record.Commit {
		return nil, sdk.Transient(fmt.Errorf("collection %q was changed by another process since it was opened: open it again", s.Collection), 0)
	}
	tidied, err := tidy(ctx, now)
	if err != nil {
		return nil, err
	}
	mine.Last = max(mine.Last, now.Record.Commit) + 1
	if err := mine.renew(ctx, s.Table); err != nil {
		return nil, err
	}
	tx := &transaction{
		base: now, lease: mine, tidied: tidied, number: mine.Last, first: now.Record.Next, next: now.Record.Next,
		latest: map[int64]int64{}, frequencies: map[uint32]int64{}, until: time.Unix(mine.Until, 0),
	}
	tx.sending.SetLimit(sends)
	tx.ctx, tx.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	tx.renewing.Go(tx.renew)
	w.staged = tx
	return tx, nil
}

// renew prolongs the lease until the transaction ends or somebody else has it.
func (tx *transaction) renew() {
	mine := tx.lease
	for backoff.Sleep(tx.ctx, leaseRenew) == nil {
		err := mine.check(tx.ctx, tx.base.Table)
		if err == nil {
			err = mine.renew(tx.ctx, tx.base.Table)
		}
		tx.mu.Lock()
		switch {
		case err == nil:
			tx.until = time.Unix(mine.Until, 0)
		case tx.ctx.Err() == nil && sdk.CodeOf(err) == sdk.CodeTransient:
			tx.lost = err
		}
		tx.mu.Unlock()
	}
}

// stillHeld reports whether the transaction may rely on the lease for another call.
func (tx *transaction) stillHeld() error {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	if tx.lost == nil && time.Until(tx.until) <= 0 {
		return sdk.Transient(errors.New("the lease of the writer ended: the server did not answer for too long"), 0)
	}
	return tx.lost
}
