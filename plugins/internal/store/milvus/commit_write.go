package milvus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
)

// supersede finds the rows that the transaction replaces or deletes, and counts them out of the
// statistics: they are dead.
func (tx *transaction) supersede(ctx context.Context) error {
	if err := tx.flush(ctx); err != nil {
		return err
	}
	for part := range slices.Chunk(tx.superseded, table.LookUp) {
		n, err := tx.countOut(ctx, table.Numbers(table.FieldSequence, part))
		if err == nil && n != len(part) {
			err = table.LostRows(n, len(part))
		}
		if err != nil {
			return err
		}
	}
	if tx.base.Record.Entries == 0 {
		return nil
	}
	for part := range slices.Chunk(slices.Collect(maps.Keys(tx.latest)), table.LookUp) {
		if _, err := tx.countOut(ctx, table.And(tx.base.Expression(), table.Numbers(table.FieldIDHash, part))); err != nil {
			return err
		}
	}
	return nil
}

// countOut counts rows out, and returns how many there are.
func (tx *transaction) countOut(ctx context.Context, expr string) (int, error) {
	fields := []string{table.FieldKey}
	if tx.base.Analyzer != nil {
		fields = append(fields, table.FieldDetails)
	}
	rows, err := tx.base.Query(ctx, table.NewestTable, expr, fields...)
	for _, r := range rows {
		if !tx.base.Dead[r.Sequence] {
			tx.count(r.Counts, -1)
			tx.next.Dead[r.Sequence] = true
		}
	}
	return len(rows), err
}

// verify checks that the server has every row of the transaction: one that was
// killed may have lost some.
func (tx *transaction) verify(ctx context.Context) error {
	expr, rows := table.Between(tx.base.Record.Next, tx.next.Record.Next), tx.rows()
	n, err := tx.base.Count(ctx, expr)
	if err != nil || n == rows {
		return err
	}
	seen := map[int64]bool{} // a count may be too high
	err = tx.base.Walk(ctx, table.NewestTable, "", expr, []string{table.FieldKey}, func(r table.Found) bool {
		seen[r.Sequence] = true
		return true
	})
	if err == nil && len(seen) != rows {
		err = table.LostRows(len(seen), rows)
	}
	return err
}

// tidy removes what nothing refers to: rows that other turns left, rows that died so
// long ago that no reader asks for them, and system rows of earlier turns. Dead rows that are gone
// it takes off the list of the next commit. Removing by numbers and keys of earlier turns may come
// late as well: no later turn uses them.
func tidy(ctx context.Context, s *Snapshot, t *turn, next *Snapshot) error {
	if t.disputed {
		return nil
	}
	for _, gap := range s.Record.Gaps {
		left := table.Between(gap.From, gap.To)
		n, err := s.Count(ctx, left)
		if err == nil && n > 0 {
			err = s.Remove(ctx, left)
		}
		if err != nil {
			return err
		}
	}
	if err := tidySystem(ctx, s, t); err != nil || time.Since(time.Unix(s.Record.Time, 0)) < settled {
		return err
	}
	for part := range slices.Chunk(slices.Collect(maps.Keys(s.Dead)), table.LookUp) {
		if err := s.Remove(ctx, table.Numbers(table.FieldSequence, part)); err != nil {
			return err
		}
	}
	clear(next.Dead)
	return nil
}

func tidySystem(ctx context.Context, s *Snapshot, t *turn) error {
	used := s.Record.Keys()
	system, err := s.Query(ctx, table.NewestTable, fmt.Sprintf("%s == %d", table.FieldSequence, table.SystemSequence), table.FieldKey)
	if err != nil {
		return err
	}
	var unused []string
	for _, r := range system {
		if turn, err := KeyTurn(r.Key); err == nil && turn < t.Turn && !used[r.Key] {
			unused = append(unused, r.Key)
		}
	}
	for part := range slices.Chunk(unused, table.LookUp) {
		if err := s.Remove(ctx, table.Keys(part)); err != nil {
			return err
		}
	}
	return nil
}

// Writer changes one collection, for one call at a time. Its methods may be
// called by several goroutines.
type Writer struct {
	View *View
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
func (w *Writer) Open(ctx context.Context, t *table.Table) (*Snapshot, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	exists, err := t.Exists(ctx)
	if err != nil {
		return nil, err
	}
	w.rollback(ctx)
	s := EmptySnapshot(t, false)
	if exists {
		if err := t.Prepare(ctx); err != nil {
			return nil, err
		}
		if s, err = ReadSnapshot(ctx, t, nil); err != nil {
			return nil, err
		}
	}
	w.dropped = false
	w.View.Set(s)
	return s, nil
}

// Put stages entries. Those that are too long for Milvus fail alone.
func (w *Writer) Put(ctx context.Context, entries []sdk.Entry) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, err := w.View.Opened()
	if err != nil {
		return err
	}
	rows, long, err := s.CheckRows(entries)
	if err != nil {
		return err
	}
	tx, err := w.begin(ctx)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { tx.cancel(ctx.Err()) })()
	for _, r := range rows {
		if err := tx.put(r); err != nil {
			return w.undo(ctx, err)
		}
	}
	if len(long) > 0 {
		return long
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
