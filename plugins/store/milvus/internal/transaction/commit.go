package transaction

import (
	"bytes"
	"cmp"
	"context"
	"time"

	"github.com/racflow/racflow/plugins/store/milvus/internal/snapshot"
)

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
	if tx.rows >= flushRows {
		if err := t.Flush(ctx); err != nil {
			w.Log.Debug("the server did not flush", "collection", t.Collection, "error", err)
		}
	}
	return nil
}

// commit returns the snapshot that it leads to.
func (tx *transaction) commit(ctx context.Context, note []byte) (*snapshot.Snapshot, error) {
	next, rows, err := tx.prepare(ctx, note)
	if err != nil {
		return nil, err
	}
	if err := tx.base.PutSystem(ctx, rows...); err != nil {
		return nil, err
	}
	if _, err := tx.turn.check(ctx); err != nil {
		return nil, err
	}
	next.Record.Time = time.Now().Add(tx.base.Server.Config.RetryTime).Unix()
	err = tx.turn.put(ctx, next.Record, "record")
	next.Seen = time.Now()
	// It counts once it is there and nobody has claimed a higher turn, whatever was
	// replied.
	looking, cancel := context.WithTimeout(context.WithoutCancel(ctx), tx.base.Server.Config.CallTimeout)
	defer cancel()
	missing := tx.turn.checkRecord(looking)
	if missing == nil {
		return next, nil
	}
	return nil, errUncertain{cmp.Or(err, missing)}
}

// errUncertain is the error of a commit that may have been made all the same.
type errUncertain struct{ error }

func (e errUncertain) Unwrap() error { return e.error }
