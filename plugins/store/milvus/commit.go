package milvus

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/analyze"
)

// lookAhead is how many entries are looked up at a time.
const lookAhead = 500

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

// supersede finds the rows that the transaction replaces or deletes, takes
// them out of the statistics, and returns those of earlier commits.
func (c *collection) supersede(ctx context.Context, old *state) ([]int64, error) {
	tx := c.staged
	if err := c.sent(ctx); err != nil {
		return nil, err
	}
	fields := []string{fieldKey}
	if old.analyzer != nil {
		fields = append(fields, fieldDetails)
	}
	out := func(rows []found) error {
		tx.entries -= len(rows)
		if old.analyzer == nil {
			return nil
		}
		if err := c.countMissing(ctx, *old.analyzer, rows); err != nil {
			return err
		}
		for _, r := range rows {
			tx.account(*r.counts, -1)
		}
		return nil
	}
	for part := range slices.Chunk(tx.superseded, lookAhead) {
		rows, err := c.query(ctx, numberIn(fieldSequence, part), fields, newest())
		if err != nil {
			return nil, err
		}
		if len(rows) != len(part) {
			return nil, c.lostRows(len(rows), len(part))
		}
		if err := out(rows); err != nil {
			return nil, err
		}
	}
	var dead []int64
	if old.record.Entries == 0 {
		return nil, nil
	}
	slots := slices.Collect(maps.Keys(tx.latest))
	for part := range slices.Chunk(slots, lookAhead) {
		rows, err := c.query(ctx, old.visible()+" and "+numberIn(fieldSlot, part), fields, newest())
		if err != nil {
			return nil, err
		}
		rows = slices.DeleteFunc(rows, func(r found) bool {
			_, isDead := old.dead[r.sequence]
			return isDead
		})
		for _, r := range rows {
			dead = append(dead, r.sequence)
		}
		if err := out(rows); err != nil {
			return nil, err
		}
	}
	return dead, nil
}

// countMissing counts the words of rows that have too many for a field.
func (c *collection) countMissing(ctx context.Context, a analyze.Analyzer, rows []found) error {
	place := map[int64][]int{}
	var keys []string
	for i, r := range rows {
		if r.counts != nil {
			continue
		}
		if place[r.sequence] == nil {
			keys = append(keys, r.key)
		}
		place[r.sequence] = append(place[r.sequence], i)
	}
	for part := range slices.Chunk(keys, lookAhead) {
		texts, err := c.query(ctx, withKeys(part), []string{fieldKey, fieldText, fieldContext}, c.level())
		if err != nil {
			return err
		}
		for _, r := range texts {
			words := countWords(a, r.entry.Context, r.entry.Text)
			for _, i := range place[r.sequence] {
				rows[i].counts = &words
			}
			delete(place, r.sequence)
		}
	}
	if len(place) > 0 {
		return c.lostRows(len(rows)-len(place), len(rows))
	}
	return nil
}

func numberIn(field string, numbers []int64) string {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.FormatInt(n, 10)
	}
	return field + " in [" + strings.Join(texts, ",") + "]"
}

// complete checks that the server has every row of the transaction: one that
// was killed may have lost some.
func (c *collection) complete(ctx context.Context) error {
	tx := c.staged
	expr := between(tx.first, tx.next)
	n, err := c.count(ctx, expr)
	if err != nil || n == tx.rows {
		return err
	}
	// Milvus Lite 2 counts a row again that was written twice.
	seen := map[int64]bool{}
	err = c.walk(ctx, 0, tx.next, expr, []string{fieldKey}, func(r found) error {
		seen[r.sequence] = true
		return nil
	})
	if err == nil && len(seen) != tx.rows {
		err = c.lostRows(len(seen), tx.rows)
	}
	return err
}

func (c *collection) lostRows(have, want int) error {
	return sdk.Transient(fmt.Errorf("the server has %d of %d rows that were written: it lost some", have, want), 0)
}

// drift is how far the average length may be from the one that the words of a
// row are weighed with.
const (
	drift     = 1.25
	halfDrift = 1 + (drift-1)/2
)

// refresh puts rows again whose words are weighed with an average that is too
// far from today's, and returns the rows that they replace.
func (c *collection) refresh(ctx context.Context, old *state, dead []int64, replaced bool) ([]int64, error) {
	if old.analyzer == nil {
		return nil, nil
	}
	tx := c.staged
	average := c.averageWith(tx)
	var span record
	if !replaced {
		span = old.record
	}
	c.averages(&span, tx, false)
	if span.Lowest == 0 || average <= drift*span.Lowest && span.Highest <= drift*average {
		return nil, nil
	}
	gone := map[int64]bool{}
	for _, n := range slices.Concat(dead, tx.superseded, slices.Collect(maps.Keys(old.dead))) {
		gone[n] = true
	}
	refreshed, err := c.outdated(ctx, old, gone, average)
	if err != nil {
		return nil, err
	}
	lowest, highest := tx.lowest, tx.highest
	tx.lowest, tx.highest = 0, 0
	numbers := make([]int64, 0, len(refreshed))
	for part := range slices.Chunk(refreshed, vectorWindow) {
		rows, err := c.query(ctx, withKeys(part), slices.Concat(fieldsScan, fieldsTexts, []string{fieldVector}), newest())
		if err != nil {
			return nil, err
		}
		slices.SortFunc(rows, byPlace)
		for _, r := range rows {
			numbers = append(numbers, r.sequence)
			if err := c.restage(r, old.shape); err != nil {
				return nil, err
			}
		}
	}
	if len(numbers) != len(refreshed) {
		return nil, c.lostRows(len(numbers), len(refreshed))
	}
	if err := c.send(); err != nil {
		return nil, err
	}
	// The rows that were left alone are within the half of the drift.
	tx.lowest, tx.highest = min(max(lowest, average/halfDrift), average), max(min(highest, average*halfDrift), average)
	return numbers, nil
}

// outdated lists the keys of the living rows that are due.
func (c *collection) outdated(ctx context.Context, old *state, gone map[int64]bool, average float64) ([]string, error) {
	var keys []string
	tx := c.staged
	err := c.walk(ctx, 0, tx.next, between(old.record.Floor, tx.next), []string{fieldKey, fieldDetails}, func(r found) error {
		if !gone[r.sequence] && (r.average*halfDrift < average || average*halfDrift < r.average) {
			keys = append(keys, r.key)
		}
		return nil
	})
	return keys, err
}

// restage puts a row again, in its place. It is counted in once more and out
// once more: nothing changes.
func (c *collection) restage(r found, has shape) error {
	meta, err := encodeMeta(r.entry.Meta)
	if err != nil {
		return err
	}
	tx := c.staged
	// It is on the list of the refreshed, so not on that of the superseded.
	delete(tx.latest, slotOf(r.entry.ID))
	words := countWords(*has.analyzer, r.entry.Context, r.entry.Text)
	r.entry.Vector = r.entry.Vector[:has.schema.Dimension]
	if err := c.stage(r.entry, meta, r.place); err != nil {
		return err
	}
	tx.entries--
	tx.account(words, -1)
	return nil
}
