package milvus

import (
	"context"
	"maps"
	"slices"
	"time"
)

// tidy removes what nothing refers to: rows that a killed writer left, rows
// that died so long ago that no reader asks for them, parts of old records. It
// reports whether no dead row is left.
func (c *collection) tidy(ctx context.Context, s *state) (bool, error) {
	stale := between(s.record.Next, noEntry)
	if n, err := c.count(ctx, stale); err != nil {
		return false, err
	} else if n > 0 {
		if err := c.remove(ctx, stale); err != nil {
			return false, err
		}
	}
	used := map[string]bool{keyRecord: true, keyLease: true}
	for kind, blobs := range map[string][]blob{kindNote: {s.record.Note}, kindTerms: s.record.Statistics, kindDead: s.record.Dead} {
		for _, b := range blobs {
			for _, key := range b.keys(kind) {
				used[key] = true
			}
		}
	}
	there, err := c.specialKeys(ctx)
	if err != nil {
		return false, err
	}
	var unused []string
	for _, key := range there {
		if !used[key] {
			unused = append(unused, key)
		}
	}
	if err := c.removeKeys(ctx, unused); err != nil {
		return false, err
	}
	if time.Since(time.Unix(s.record.Time, 0)) < grace {
		return false, nil
	}
	for part := range slices.Chunk(slices.Collect(maps.Keys(s.dead)), lookAhead) {
		if err := c.remove(ctx, numberIn(fieldSequence, part)); err != nil {
			return false, err
		}
	}
	if s.record.Floor > 0 {
		return true, c.remove(ctx, between(0, s.record.Floor))
	}
	return true, nil
}
