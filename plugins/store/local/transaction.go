package local

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"syscall"

	"github.com/racflow/racflow/sdk"
)

// transaction is what was written since the last commit.
type transaction struct {
	lock    *os.File
	log     *appender
	start   int64 // of its first frame
	next    uint64
	changes []change
}

// frameBytes bounds what is put into one frame, and so what is read at a time.
const frameBytes = 8 << 20

// change writes to the log and stages what was written. If that fails, all
// changes since the last commit are undone. The caller holds c.writing.
func (c *collection) change(write func(*transaction) error) error {
	if err := c.begin(); err != nil {
		return err
	}
	if err := write(c.staged); err != nil {
		return c.undo(err)
	}
	return nil
}

func (c *collection) put(entries []sdk.Entry) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := check(c.state.schema, entries); c.table != nil && err != nil {
		return sdk.Invalid(fmt.Errorf("%w; nothing of the batch was put", err))
	}
	return c.change(func(tx *transaction) error {
		p, size := &batch{}, int64(0)
		var vector []float32
		for i, e := range entries {
			meta, _ := appendMeta(nil, e.Meta) // checked before
			vector, _ = normalise(vector[:0], e.Vector)
			r := row{sequence: tx.next, id: e.ID, hash: string(e.Hash), context: e.Context, text: e.Text, meta: string(meta)}
			p.add(r, e.Label, vector)
			tx.next++
			size += r.size(e.Label, len(vector))
			if size < frameBytes && i+1 < len(entries) {
				continue
			}
			if err := tx.write(kindPut, func(b []byte) []byte { return appendPut(b, p) }, len(vector)); err != nil {
				return err
			}
			p, size = &batch{}, 0
		}
		return nil
	})
}

func (c *collection) delete(ids []string) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.change(func(tx *transaction) error {
		for part := range slices.Chunk(ids, 1<<16) {
			if err := tx.write(kindDelete, func(b []byte) []byte { return appendDelete(b, part) }, 0); err != nil {
				return err
			}
		}
		return nil
	})
}

// write appends a frame and stages what a reader would make of it, so that
// memory and log cannot differ.
func (tx *transaction) write(k kind, payload func([]byte) []byte, dimension int) error {
	written, err := tx.log.append(k, payload)
	if err != nil {
		return err
	}
	change, ok := decodeChange(k, written, dimension)
	if !ok {
		return errors.New("a record cannot be read back")
	}
	tx.changes = append(tx.changes, change)
	return nil
}

// commit makes the staged changes durable, then visible.
func (c *collection) commit(note []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.staged == nil && c.table != nil && !c.dropped && c.state.end > 0 && bytes.Equal(note, c.state.note) {
		return nil
	}
	if err := c.begin(); err != nil {
		return err
	}
	tx := c.staged
	if err := tx.log.commit(tx.next, note); err != nil {
		return c.undo(err)
	}
	c.mu.Lock()
	for _, change := range tx.changes {
		c.table.apply(change)
	}
	c.table.next = tx.next
	c.state = state{id: tx.log.id, schema: c.state.schema, end: tx.log.end, next: tx.next, note: slices.Clone(note)}
	c.mu.Unlock()
	if c.wasteful() {
		if err := c.rewrite(); err != nil {
			// The commit stands; the next one tries again.
			c.log.Warn("could not rewrite the log", "collection", c.name, "error", err)
		}
	}
	c.end()
	return nil
}

// undo drops the staged changes because of an error, and returns it with
// advice. Until the collection is opened again it takes no changes: a writer
// that went on would commit only the later ones.
func (c *collection) undo(cause error) error {
	c.rollback()
	c.dropped = true
	return fmt.Errorf("write collection %q: %w; it is as it was at the last commit", c.name, explain(cause))
}

// rollback drops the staged changes. What it cannot cut off the log, the next
// writer does.
func (c *collection) rollback() {
	if err := c.staged.log.f.Truncate(c.staged.start); err != nil {
		c.log.Warn("could not cut uncommitted changes off the log", "collection", c.name, "error", err)
	}
	c.end()
}

// close drops what was not committed and what is in memory.
func (c *collection) close() {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.staged != nil {
		c.rollback()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state, c.table = state{}, nil
}

// end closes the transaction.
func (c *collection) end() {
	c.staged.log.f.Close()
	releaseLock(c.staged.lock)
	c.staged = nil
}

// explain adds what to do about a full disk.
func explain(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("the disk is full (%w): free some space and try again", err)
	}
	return err
}

// check reports the first entry that the collection cannot take.
func check(schema sdk.Schema, entries []sdk.Entry) error {
	for i, e := range entries {
		if e.ID == "" {
			return fmt.Errorf("entry %d of the batch has no id", i)
		}
		if len(e.Vector) != schema.Dimension {
			return fmt.Errorf("entry %q has a vector of %d dimensions and the collection's have %d", e.ID, len(e.Vector), schema.Dimension)
		}
		for _, x := range e.Vector {
			if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
				return fmt.Errorf("entry %q has NaN or an infinity in its vector", e.ID)
			}
		}
		if _, ok := appendMeta(nil, e.Meta); !ok {
			return fmt.Errorf("entry %q has metadata that is neither string, float64 nor bool", e.ID)
		}
	}
	return nil
}
