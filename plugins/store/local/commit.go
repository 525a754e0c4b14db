package local

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// smallLog is the size in bytes below which a log is left alone.
const smallLog = 64 << 10

// commit makes the staged changes durable, then visible, then merges what is
// due. Searches go on meanwhile.
func (c *collection) commit(note []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if now := c.now.Load(); c.staged == nil && now != nil && !c.dropped && now.end > 0 && bytes.Equal(note, now.note) {
		return nil
	}
	if err := c.begin(); err != nil {
		return err
	}
	next, err := c.advance(c.staged, slices.Clone(note))
	if err != nil {
		return c.undo(err)
	}
	c.now.Store(next)
	if err := c.tidy(); err != nil {
		// The commit stands; the next one tries again.
		c.log.Warn("could not merge segments", "collection", c.name, "error", err)
	}
	c.end()
	return nil
}

// advance makes the staged changes durable and returns the snapshot with them.
func (c *collection) advance(tx *transaction, note []byte) (*snapshot, error) {
	old := c.now.Load()
	parts := c.survivors(old, tx)
	now := state{id: tx.log.id, schema: old.schema, base: old.base, listed: old.listed, next: tx.next, note: note}
	if now.base == 0 {
		now.base = tx.start
	}
	files := filesOf(parts)
	inMemory := len(tx.rows.rows)
	for i := range parts[files:] {
		inMemory += parts[files+i].segment.rows
	}
	if tx.large || inMemory > c.limits.rows || tx.log.end-now.base > c.limits.bytes {
		parts, err := c.toFiles(parts, tx)
		if err != nil {
			return nil, err
		}
		return c.checkpoint(old.with(now, parts))
	}
	parts, err := old.append(parts, &tx.rows)
	if err != nil {
		return nil, err
	}
	if err := countable(parts); err != nil {
		return nil, err
	}
	if err := tx.log.commit(tx.next, note); err != nil {
		return nil, err
	}
	now.end = tx.log.end
	return old.with(now, parts), nil
}

// survivors returns the committed parts without the rows that were deleted or
// replaced.
func (c *collection) survivors(old *snapshot, tx *transaction) []part {
	kept := newRemover(old.parts, old.analyzer)
	if old.living == 0 {
		return kept.parts
	}
	for id := range tx.gone {
		kept.remove(id)
	}
	for id := range tx.rows.place {
		kept.remove(id)
	}
	for i := range tx.spilt.parts {
		p := &tx.spilt.parts[i]
		for r := range int32(p.segment.rows) {
			if !p.dead.has(r) {
				kept.remove(p.id(r))
			}
		}
	}
	return kept.parts
}

// toFiles writes all rows that are in memory to files. The order of the parts
// stays that of the sequence numbers.
func (c *collection) toFiles(parts []part, tx *transaction) ([]part, error) {
	files := filesOf(parts)
	inputs := inputsOf(parts[files:])
	parts = slices.Clip(parts[:files])
	write := func() error {
		if len(inputs) == 0 {
			return nil
		}
		s, err := c.writeFile(inputs)
		if err == nil {
			parts = append(parts, wholePart(s))
		}
		inputs = nil
		return err
	}
	if len(tx.spilt.parts) > 0 {
		if err := write(); err != nil {
			return nil, err
		}
		parts = append(parts, tx.spilt.parts...)
	}
	if len(tx.rows.place) > 0 {
		inputs = append(inputs, input{source: tx.rows.source(c.now.Load().analyzer)})
	}
	err := write()
	return parts, errors.Join(err, countable(parts))
}

// tidy merges the parts in files that are due, gives the collection a new log
// where much of the old one is superseded, and removes files that it no longer
// needs.
func (c *collection) tidy() error {
	now := c.now.Load()
	parts, files := slices.Clone(now.parts), filesOf(now.parts)
	replaced := now.id != c.staged.log.id // by the commit
	merged := false
	var err error
	defer func() {
		if (replaced || merged) && !errors.Is(err, errUnsure) {
			c.sweep()
		}
	}()
	for {
		first, last := due(parts[:files])
		if last == 0 {
			break
		}
		merged = true
		var s *segment
		if s, err = c.writeFile(inputsOf(parts[first:last])); err != nil {
			return err
		}
		parts = slices.Replace(parts, first, last, wholePart(s))
		files -= last - first - 1
	}
	if !merged && files == len(now.listed) && !wasteful(now) {
		return nil
	}
	var next *snapshot
	if next, err = c.checkpoint(now.with(now.state, parts)); err == nil {
		replaced = true
		c.now.Store(next)
	}
	return err
}

// wasteful reports whether a new log would take at most half as much.
func wasteful(s *snapshot) bool {
	var living int64
	for i := range s.parts {
		living += s.parts[i].logged
	}
	return s.end-s.base > smallLog && s.end-s.base > 2*living+s.base
}

// countable reports whether the rows of parts can be numbered.
func countable(parts []part) error {
	rows := 0
	for i := range parts {
		rows += parts[i].segment.rows
	}
	if rows > maxRows {
		return fmt.Errorf("a collection has at most %d rows", maxRows)
	}
	return nil
}
