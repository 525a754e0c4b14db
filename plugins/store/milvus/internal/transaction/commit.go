package transaction

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/racflow/racflow/plugins/store/milvus/internal/row"
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

// prepare finishes what was staged and returns the snapshot that the commit
// leads to, with the system rows that its record refers to.
func (tx *transaction) prepare(ctx context.Context, note []byte) (*snapshot.Snapshot, []row.Row, error) {
	base := tx.base
	dead, err := tx.supersede(ctx)
	if err != nil {
		return nil, nil, err
	}
	replaced := base.Record.Entries > 0 && len(dead) == base.Record.Entries // all of it
	reweighed, err := tx.reweigh(ctx, dead, replaced)
	if err != nil {
		return nil, nil, err
	}
	if err := tx.flush(ctx); err != nil {
		return nil, nil, err
	}
	if err := tx.verify(ctx); err != nil {
		return nil, nil, err
	}

	next := snapshot.Empty(base.Table, true)
	next.Record, next.Note, next.Frequencies = base.Record, slices.Clone(note), maps.Clone(base.Frequencies)
	r := &next.Record
	r.Commit, r.Next = tx.turn.Turn, tx.next
	if base.Record.Commit == 0 {
		r.Origin = tx.turn.Holder
	}
	r.Entries += tx.entries
	r.Words += tx.words
	r.Statistics, r.Dead = slices.Clone(r.Statistics), slices.Clone(r.Dead)
	if tx.tidied || replaced {
		r.Dead = nil
	} else {
		maps.Copy(next.Dead, base.Dead)
	}
	if replaced {
		r.Floor, r.Gaps, dead = base.Record.Next, nil, nil
	}
	tx.widen(r, replaced || len(reweighed) > 0)
	var rows []row.Row
	if dead = slices.Concat(dead, reweighed, tx.superseded); len(dead) > 0 {
		b, parts := snapshot.NewBlob(snapshot.KindDead, tx.turn.Turn, snapshot.Encode(dead))
		r.Dead, rows = append(r.Dead, b), append(rows, parts...)
		for _, n := range dead {
			next.Dead[n] = struct{}{}
		}
	}
	if !bytes.Equal(note, base.Note) || base.Record.Commit == 0 {
		b, parts := snapshot.NewBlob(snapshot.KindNote, tx.turn.Turn, note)
		r.Note, rows = b, append(rows, parts...)
	}
	return next, append(rows, tx.statistics(next)...), nil
}

// widen brings the range of the averages up to date, or begins it anew.
func (tx *transaction) widen(r *snapshot.Record, anew bool) {
	if anew || r.Lowest == 0 {
		r.Lowest, r.Highest = tx.lowest, tx.highest
	}
	if tx.lowest > 0 {
		r.Lowest, r.Highest = min(r.Lowest, tx.lowest), max(r.Highest, tx.highest)
	}
}

// statistics brings the document frequencies up to date and returns the rows
// that say so: what changed, or all of it when the changes outweigh the rest.
func (tx *transaction) statistics(next *snapshot.Snapshot) []row.Row {
	changed := map[uint32]uint32{}
	for word, change := range tx.frequencies {
		if change == 0 {
			continue
		}
		n := uint32(int64(next.Frequencies[word]) + change)
		if changed[word] = n; n == 0 {
			delete(next.Frequencies, word)
		} else {
			next.Frequencies[word] = n
		}
	}
	if len(changed) == 0 {
		return nil
	}
	items := len(changed)
	for _, b := range next.Record.Statistics {
		items += b.Items
	}
	if items > 2*len(next.Frequencies)+1000 || len(next.Record.Statistics) >= 64 {
		changed, next.Record.Statistics = next.Frequencies, nil
	}
	b, rows := snapshot.NewBlob(snapshot.KindStatistics, tx.turn.Turn, snapshot.Encode(changed))
	b.Items = len(changed)
	next.Record.Statistics = append(next.Record.Statistics, b)
	return rows
}
