package transaction

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/racflow/racflow/plugins/store/milvus/internal/row"
	"github.com/racflow/racflow/plugins/store/milvus/internal/snapshot"
)

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
