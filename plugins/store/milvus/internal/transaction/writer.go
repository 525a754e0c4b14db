package transaction

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/racflow/racflow/plugins/store/milvus/internal/row"
	"github.com/racflow/racflow/plugins/store/milvus/internal/snapshot"
	"github.com/racflow/racflow/plugins/store/milvus/internal/table"
	"github.com/racflow/racflow/sdk"
)

// Writer changes one collection, for one call at a time. Its methods may be
// called by several goroutines.
type Writer struct {
	View *snapshot.View
	Log  *slog.Logger

	mu      sync.Mutex
	staged  *transaction // nil: no change since the last commit
	dropped bool         // an error undid changes and the caller may not know
}

// undoTime is how long a writer may take to end a turn without a commit. The rows of
// it the next writer removes.
const undoTime = 5 * time.Second

// Open drops what was staged and reads the last commit of a table, which need not
// exist: the first change creates it.
func (w *Writer) Open(ctx context.Context, t *table.Table) (*snapshot.Snapshot, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	exists, err := t.Exists(ctx)
	if err != nil {
		return nil, err
	}
	w.rollback(ctx)
	s := snapshot.Empty(t, false)
	if exists {
		if err := t.Prepare(ctx); err != nil {
			return nil, err
		}
		if s, err = snapshot.Read(ctx, t, nil); err != nil {
			return nil, err
		}
	}
	w.dropped = false
	w.View.Set(s)
	return s, nil
}

// Put stages entries.
func (w *Writer) Put(ctx context.Context, entries []sdk.Entry) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, err := w.View.Opened()
	if err != nil {
		return err
	}
	metas, err := row.Check(s.Schema, entries)
	if err != nil {
		return sdk.Invalid(fmt.Errorf("%w; nothing of the batch was put", err))
	}
	tx, err := w.begin(ctx)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { tx.cancel(ctx.Err()) })()
	for i, e := range entries {
		e.Vector = row.Unit(e.Vector)
		if err := tx.put(e, metas[i]); err != nil {
			return w.undo(ctx, err)
		}
	}
	return nil
}

// Delete stages the removal of entries.
func (w *Writer) Delete(ctx context.Context, ids []string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	tx, err := w.begin(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		tx.replace(id, deleted)
	}
	return nil
}

// Drop removes the table that find returns from the server; nil: there is none. It
// removes none that another process writes.
func (w *Writer) Drop(ctx context.Context, find func(context.Context) (*table.Table, error)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rollback(ctx)
	t, err := find(ctx)
	if err == nil && t != nil {
		if err = t.Prepare(ctx); err == nil { // turns are rows of it
			_, err = takeTurn(ctx, t)
		}
		if err == nil {
			err = t.Drop(ctx)
		}
	}
	if err == nil {
		w.View.Set(nil)
	}
	return err
}

// Close drops what was not committed.
func (w *Writer) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rollback(context.Background())
	w.View.Set(nil)
}

// undo drops the staged changes because of an error, and returns it with
// advice. Until the collection is opened again it takes no changes: a writer
// that resumed would commit only the later ones.
func (w *Writer) undo(ctx context.Context, cause error) error {
	s := w.staged.base
	w.rollback(ctx)
	w.dropped = true
	state := "the collection is as it was at the last commit"
	if errors.As(cause, new(errUncertain)) {
		state = "it may have been committed all the same: open the collection again, and see its note"
	}
	err := fmt.Errorf("write collection %q: %w; %s", s.Collection, cause, state)
	if errors.Is(cause, context.Canceled) {
		return &sdk.Error{Code: sdk.CodeCancelled, Err: err}
	}
	return err
}

// rollback drops the staged changes, if there are any.
func (w *Writer) rollback(ctx context.Context) {
	tx := w.staged
	if tx == nil {
		return
	}
	tx.cancel(errors.New("the transaction is undone"))
	_ = tx.sending.Wait()
	w.end()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	if err := tx.turn.release(ctx); err != nil {
		w.Log.Warn("could not end the turn of the writer; it ends by itself", "collection", tx.base.Collection, "error", err)
	}
}

// end ends the transaction and the renewal of its lease.
func (w *Writer) end() {
	w.staged.cancel(nil)
	w.staged.renewing.Wait()
	w.staged = nil
}
