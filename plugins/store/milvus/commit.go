package milvus

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// commit makes the staged changes visible. Everything is on the server before
// the record is replaced, and the record is one row.
func (c *collection) commit(ctx context.Context, note []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if s := c.known(); c.staged == nil && s != nil && !c.dropped && s.record.Commit > 0 && bytes.Equal(note, s.note) {
		return nil
	}
	if err := c.begin(ctx); err != nil {
		return c.failedBegin(ctx, err)
	}
	next, rows, err := c.prepareCommit(ctx, note)
	if err == nil {
		err = c.writeSpecial(ctx, rows)
	}
	tx := c.staged
	if err == nil {
		err = c.holds(ctx, tx.lease)
	}
	if err == nil {
		err = tx.stillHeld()
	}
	if err == nil {
		err = c.replaceRecord(ctx, next)
	}
	if err != nil {
		return c.undo(ctx, err)
	}
	c.end()
	c.mu.Lock()
	c.state = next
	c.mu.Unlock()
	if err := c.release(ctx, tx); err != nil {
		c.log.Warn("could not release the lease; it ends by itself", "collection", c.name, "error", err)
	}
	if tx.rows >= flushRows {
		c.flush(ctx)
	}
	return nil
}

// replaceRecord is the commit. Where it is not known whether a try reached the
// server, the record itself tells.
func (c *collection) replaceRecord(ctx context.Context, next *state) error {
	text, err := json.Marshal(next.record)
	if err != nil {
		return err
	}
	writeErr := c.upsert(ctx, []row{specialRow(keyRecord, string(text))})
	next.seen = time.Now()
	if writeErr == nil {
		return nil
	}
	looking, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.server.config.CallTimeout)
	defer cancel()
	if now, err := c.special(looking, []string{keyRecord}); err == nil && now[keyRecord] == string(text) {
		return nil
	}
	return writeErr
}

// prepareCommit finishes what was staged and returns the state that the commit
// leads to, with the rows that its record refers to.
func (c *collection) prepareCommit(ctx context.Context, note []byte) (*state, []row, error) {
	tx, old := c.staged, c.known()
	dead, err := c.supersede(ctx, old)
	if err != nil {
		return nil, nil, err
	}
	replaced := old.record.Entries > 0 && len(dead) == old.record.Entries // all of it
	refreshed, err := c.refresh(ctx, old, dead, replaced)
	if err != nil {
		return nil, nil, err
	}
	if err := c.sent(ctx); err != nil {
		return nil, nil, err
	}
	if err := c.complete(ctx); err != nil {
		return nil, nil, err
	}
	dead = append(dead, refreshed...)

	next := &state{record: old.record, note: slices.Clone(note), df: maps.Clone(old.df), dead: map[int64]struct{}{}, shape: old.shape}
	r := &next.record
	r.Version, r.Commit, r.Next, r.Time = schemaVersion, tx.number, tx.next, time.Now().Unix()
	r.Entries += tx.entries
	r.Words += tx.words
	r.Statistics, r.Dead = slices.Clone(r.Statistics), slices.Clone(r.Dead)
	if tx.tidied || replaced {
		r.Dead = nil
	} else {
		maps.Copy(next.dead, old.dead)
	}
	if replaced {
		r.Floor = old.record.Next
		dead = dead[old.record.Entries:]
	}
	c.averages(r, tx, replaced || len(refreshed) > 0)
	var rows []row
	if len(dead)+len(tx.superseded) > 0 {
		all := slices.Concat(dead, tx.superseded)
		b, parts := blobRows(kindDead, tx.number, appendDead(nil, all))
		r.Dead, rows = append(r.Dead, b), append(rows, parts...)
		for _, n := range all {
			next.dead[n] = struct{}{}
		}
	}
	if !bytes.Equal(note, old.note) || old.record.Commit == 0 {
		b, parts := blobRows(kindNote, tx.number, note)
		r.Note, rows = b, append(rows, parts...)
	}
	return next, append(rows, c.statistics(next, tx)...), nil
}

// averages widens the range of the averages, or begins it anew.
func (c *collection) averages(r *record, tx *transaction, anew bool) {
	if anew || r.Lowest == 0 {
		r.Lowest, r.Highest = tx.lowest, tx.highest
	}
	if tx.lowest > 0 {
		r.Lowest, r.Highest = min(r.Lowest, tx.lowest), max(r.Highest, tx.highest)
	}
}

// statistics brings the document frequencies up to date and returns the rows
// that say so: what changed, or all of it when the changes outweigh the rest.
func (c *collection) statistics(next *state, tx *transaction) []row {
	changed := map[uint32]uint32{}
	for word, change := range tx.df {
		if change == 0 {
			continue
		}
		n := uint32(int64(next.df[word]) + change)
		if changed[word] = n; n == 0 {
			delete(next.df, word)
		} else {
			next.df[word] = n
		}
	}
	if len(changed) == 0 {
		return nil
	}
	items := len(changed)
	for _, b := range next.record.Statistics {
		items += b.Items
	}
	if items > 2*len(next.df)+1000 || len(next.record.Statistics) >= 64 {
		changed, next.record.Statistics = next.df, nil
	}
	b, rows := blobRows(kindTerms, tx.number, appendTerms(nil, changed))
	b.Items = len(changed)
	next.record.Statistics = append(next.record.Statistics, b)
	return rows
}
