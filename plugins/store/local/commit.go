package local

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/racflow/racflow/plugins/store/local/internal/row"
	"github.com/racflow/racflow/plugins/store/local/internal/segment"
	"github.com/racflow/racflow/plugins/store/local/internal/snapshot"
	"github.com/racflow/racflow/plugins/store/local/internal/wal"
)

// smallLog is the size in bytes below which a log is left alone.
const smallLog = 64 << 10

// commit makes the staged changes durable, then visible, then merges what is
// due. Searches continue meanwhile.
func (c *collection) commit(note []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if now := c.now.Load(); c.staged == nil && now != nil && !c.dropped && now.End > 0 && bytes.Equal(note, now.Note) {
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

// advance makes the staged changes durable and returns the version with them.
func (c *collection) advance(tx *transaction, note []byte) (*version, error) {
	old := c.now.Load()
	parts := c.survivors(old, tx)
	now := wal.State{ID: tx.log.ID, Schema: old.Schema, Base: old.Base, Listed: old.Listed, Next: tx.next, Note: note}
	if now.Base == 0 {
		now.Base = tx.start
	}
	files := snapshot.Files(parts)
	inMemory := len(tx.Rows.Rows)
	for i := range parts[files:] {
		inMemory += parts[files+i].Segment.Rows
	}
	if tx.large || inMemory > c.limits.rows || tx.log.End-now.Base > c.limits.bytes {
		parts, err := c.toFiles(parts, tx)
		if err != nil {
			return nil, err
		}
		return c.checkpoint(now, old.With(parts))
	}
	parts, err := old.Append(parts, &tx.Rows)
	if err != nil {
		return nil, err
	}
	if err := countable(parts); err != nil {
		return nil, err
	}
	if err := tx.log.Commit(tx.next, note); err != nil {
		return nil, err
	}
	now.End = tx.log.End
	return c.version(now, old.With(parts)), nil
}

// survivors returns the committed parts without the rows that were deleted or
// replaced.
func (c *collection) survivors(old *version, tx *transaction) []snapshot.Part {
	kept := snapshot.NewRemover(old.Parts, old.Analyzer)
	if old.Live == 0 {
		return kept.Parts
	}
	for id := range tx.gone {
		kept.Remove(id)
	}
	for id := range tx.Rows.Positions {
		kept.Remove(id)
	}
	for i := range tx.Parts.Parts {
		p := &tx.Parts.Parts[i]
		for r := range p.LiveRows() {
			kept.Remove(p.ID(r))
		}
	}
	return kept.Parts
}

// toFiles writes all rows that are in memory to files. The order of the parts
// stays that of the sequence numbers.
func (c *collection) toFiles(parts []snapshot.Part, tx *transaction) ([]snapshot.Part, error) {
	files := snapshot.Files(parts)
	inputs := snapshot.Inputs(parts[files:])
	parts = slices.Clip(parts[:files])
	write := func() error {
		if len(inputs) == 0 {
			return nil
		}
		s, err := c.writeFile(inputs)
		if err == nil {
			parts = append(parts, snapshot.Whole(s))
		}
		inputs = nil
		return err
	}
	if len(tx.Parts.Parts) > 0 {
		if err := write(); err != nil {
			return nil, err
		}
		parts = append(parts, tx.Parts.Parts...)
	}
	if len(tx.Rows.Positions) > 0 {
		inputs = append(inputs, segment.Input{Source: tx.Rows.Source(c.now.Load().Analyzer)})
	}
	err := write()
	return parts, errors.Join(err, countable(parts))
}

// tidy merges the parts in files that are due, gives the collection a new log
// where much of the old one is superseded, and removes files that it no longer
// needs.
func (c *collection) tidy() error {
	now := c.now.Load()
	parts, files := slices.Clone(now.Parts), snapshot.Files(now.Parts)
	replaced := now.ID != c.staged.log.ID // by the commit
	merged := false
	var err error
	defer func() {
		if (replaced || merged) && !errors.Is(err, wal.ErrUnsure) {
			c.sweep()
		}
	}()
	for {
		first, last := snapshot.Due(parts[:files])
		if last == 0 {
			break
		}
		merged = true
		var s *segment.Segment
		if s, err = c.writeFile(snapshot.Inputs(parts[first:last])); err != nil {
			return err
		}
		parts = slices.Replace(parts, first, last, snapshot.Whole(s))
		files -= last - first - 1
	}
	if !merged && files == len(now.Listed) && !wasteful(now) {
		return nil
	}
	var next *version
	if next, err = c.checkpoint(now.State, now.With(parts)); err == nil {
		replaced = true
		c.now.Store(next)
	}
	return err
}

// wasteful reports whether a new log would take at most half the room.
func wasteful(s *version) bool {
	var live int64
	for i := range s.Parts {
		live += s.Parts[i].Logged
	}
	return s.End-s.Base > smallLog && s.End-s.Base > 2*live+s.Base
}

// countable reports that parts have more rows than can be numbered.
func countable(parts []snapshot.Part) error {
	rows := 0
	for i := range parts {
		rows += parts[i].Segment.Rows
	}
	if rows > row.MaxRows {
		return fmt.Errorf("a collection has at most %d rows", row.MaxRows)
	}
	return nil
}
