package milvus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/backoff"
)

// transaction is what was written since the last commit. Its rows are on the
// server already, but for the pending ones, under a number that no search asks for.
type transaction struct {
	lease   lease
	number  int64 // of the commit that it will be
	first   int64 // sequence number
	next    int64 // sequence number
	pending []pendingRow
	bytes   int // of the pending rows
	rows    int // put so far, pending ones too

	// latest has the last thing that happened to an id, by its slot: the row that
	// was put, or deleted.
	latest     map[int64]int64
	superseded []int64 // rows of the transaction that later ones replaced

	entries int              // more or fewer than at the last commit
	words   int64            // likewise
	df      map[uint32]int64 // likewise, by word
	lowest  float64          // of the averages that words were weighed with; 0: none yet
	highest float64
	tidied  bool // the dead rows of earlier commits are gone

	stop    context.CancelFunc // of the renewal
	done    sync.WaitGroup
	sending errgroup.Group
	ctx     context.Context // of what is sent: a call returns before all is there
	cancel  context.CancelCauseFunc
	mu      sync.Mutex
	lost    error     // why the lease is not ours any more
	till    time.Time // when it ends
}

// pendingRow is a row that waits for others to be sent with.
type pendingRow struct {
	row
	counts counts
}

const deleted = -1 // in latest

// writers is how many batches are on their way at a time. A server waits for
// its disk while it could already read the next batch.
const writers = 3

// begin starts a transaction unless one is under way: it takes the lease, makes
// sure that nobody else wrote since this process read, and removes what a
// killed writer left behind.
func (c *collection) begin(ctx context.Context) (err error) {
	if c.staged != nil {
		return c.staged.stillHeld()
	}
	s := c.known()
	if s == nil {
		return c.notOpen()
	}
	if c.dropped {
		return fmt.Errorf("collection %q lost its uncommitted changes to an earlier error: open it again and make them anew", c.name)
	}
	if !c.exists {
		if err := c.create(ctx, s.schema); err != nil {
			return err
		}
		if err := c.prepare(ctx, s.schema); err != nil {
			return err
		}
		made := *s
		made.indexType = c.indexed(ctx, fieldVector)
		s = &made
		c.mu.Lock()
		c.exists, c.state = true, s
		c.mu.Unlock()
	}
	mine, err := c.takeLease(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			mine.Holder = ""
			_ = c.putLease(context.WithoutCancel(ctx), mine)
		}
	}()
	now, err := c.settle(ctx, s.shape, s)
	if err != nil {
		return err
	}
	if now.record.Commit != s.record.Commit {
		return sdk.Transient(fmt.Errorf("collection %q was changed by another process since it was opened: open it again", c.name), 0)
	}
	tidied, err := c.tidy(ctx, now)
	if err != nil {
		return err
	}
	mine.Last = max(mine.Last, now.record.Commit) + 1
	if err := c.writeLease(ctx, &mine); err != nil {
		return err
	}
	tx := &transaction{
		lease: mine, number: mine.Last, first: now.record.Next, next: now.record.Next, tidied: tidied,
		latest: map[int64]int64{}, df: map[uint32]int64{}, till: time.Unix(mine.Until, 0),
	}
	tx.sending.SetLimit(writers)
	tx.ctx, tx.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	renewing, stop := context.WithCancel(tx.ctx)
	tx.stop = stop
	tx.done.Go(func() { c.renew(renewing, tx) })
	c.staged = tx
	return nil
}

// renew prolongs the lease until it is told to stop or somebody else has it.
func (c *collection) renew(ctx context.Context, tx *transaction) {
	mine := tx.lease
	for {
		if backoff.Sleep(ctx, leaseRenew) != nil {
			return
		}
		err := c.holds(ctx, mine)
		if err == nil {
			err = c.writeLease(ctx, &mine)
		}
		tx.mu.Lock()
		switch {
		case err == nil:
			tx.till = time.Unix(mine.Until, 0)
		case ctx.Err() == nil && sdk.CodeOf(err) == sdk.CodeTransient:
			tx.lost = err
		}
		tx.mu.Unlock()
	}
}

// stillHeld reports whether the lease may be relied on for another call.
func (tx *transaction) stillHeld() error {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	if tx.lost != nil {
		return tx.lost
	}
	if time.Until(tx.till) <= 0 {
		return sdk.Transient(errors.New("the lease of the writer ended: the server did not answer for too long"), 0)
	}
	return nil
}

// undo drops the staged changes because of an error, and returns it with
// advice. Until the collection is opened again it takes no changes: a writer
// that went on would commit only the later ones.
func (c *collection) undo(ctx context.Context, cause error) error {
	c.rollback(ctx)
	c.dropped = true
	err := fmt.Errorf("write collection %q: %w; the collection is as it was at the last commit", c.name, cause)
	if errors.Is(cause, context.Canceled) {
		return &sdk.Error{Code: sdk.CodeCancelled, Err: err}
	}
	return err
}

// rollback drops the staged changes. What it cannot remove, the next writer
// does.
func (c *collection) rollback(ctx context.Context) {
	tx := c.staged
	tx.cancel(errors.New("the transaction is undone"))
	_ = tx.sending.Wait()
	c.end()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := c.holds(ctx, tx.lease)
	if err == nil && tx.rows > len(tx.pending) {
		err = c.remove(ctx, between(tx.first, noEntry))
	}
	if err == nil {
		err = c.release(ctx, tx)
	}
	if err != nil {
		c.log.Warn("could not remove uncommitted changes; the next writer does", "collection", c.name, "error", err)
	}
}

// end stops the renewal.
func (c *collection) end() {
	c.staged.stop()
	c.staged.cancel(nil)
	c.staged.done.Wait()
	c.staged = nil
}

// release lets other writers in.
func (c *collection) release(ctx context.Context, tx *transaction) error {
	free := tx.lease
	free.Holder = ""
	return c.putLease(ctx, free)
}
