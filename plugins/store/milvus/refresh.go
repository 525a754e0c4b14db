package milvus

import (
	"context"
	"maps"
	"slices"
)

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
