package milvus

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/analyze"
)

// lookAhead is how many entries are looked up at a time.
const lookAhead = 500

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
		if err := c.fillIn(ctx, old.analyzer, rows); err != nil {
			return err
		}
		for _, r := range rows {
			tx.account(r.counts.all(), -1)
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

// fillIn reads what was left out of the details of rows.
func (c *collection) fillIn(ctx context.Context, a *analyze.Analyzer, rows []found) error {
	place := map[int64][]int{}
	var keys []string
	for i, r := range rows {
		if r.whole {
			continue
		}
		if place[r.sequence] == nil {
			keys = append(keys, r.key)
		}
		place[r.sequence] = append(place[r.sequence], i)
	}
	for part := range slices.Chunk(keys, lookAhead) {
		texts, err := c.query(ctx, withKeys(part), []string{fieldKey, fieldID, fieldLabel, fieldText, fieldContext}, c.level())
		if err != nil {
			return err
		}
		for _, r := range texts {
			for _, i := range place[r.sequence] {
				rows[i].whole, rows[i].entry.ID, rows[i].entry.Label = true, r.entry.ID, r.entry.Label
				if a != nil {
					rows[i].counts = countWords(*a, r.entry.Context, r.entry.Text).pack()
				}
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
