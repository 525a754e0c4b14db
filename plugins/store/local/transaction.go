package local

import (
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
	lock   *os.File
	log    *appender
	start  int64 // of its first frame
	next   uint64
	rows   draft               // put, and in no file yet
	spilt  *remover            // the parts that rows went to before the commit
	gone   map[string]struct{} // ids to be removed from what is committed
	large  bool                // it no longer writes to the log
	schema sdk.Schema
}

// frameBytes bounds what is put into one frame, and so what is read at a time.
const frameBytes = 8 << 20

// change makes changes and stages them. If that fails, all changes since the
// last commit are undone. The caller holds c.writing.
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
	if now := c.now.Load(); now != nil {
		if err := check(now.schema, entries); err != nil {
			return sdk.Invalid(fmt.Errorf("%w; nothing of the batch was put", err))
		}
	}
	return c.change(func(tx *transaction) error {
		p, size := &batch{}, int64(0)
		var err error
		for i, e := range entries {
			meta, _ := appendMeta(nil, e.Meta) // checked before
			p.vectors, _ = normalise(p.vectors, e.Vector)
			r := row{sequence: tx.next, id: e.ID, label: e.Label, hash: string(e.Hash), context: e.Context, text: e.Text, meta: string(meta)}
			p.rows = append(p.rows, r)
			tx.next++
			size += r.size(len(e.Vector))
			if size < frameBytes && i+1 < len(entries) {
				continue
			}
			if err = tx.write(kindPut, func(b []byte) []byte { return appendPut(b, p) }, change{put: p}); err != nil {
				return err
			}
			if err := c.spill(tx); err != nil {
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
			if err := tx.write(kindDelete, func(b []byte) []byte { return appendDelete(b, part) }, change{delete: part}); err != nil {
				return err
			}
		}
		return nil
	})
}

// write appends a frame to the log and stages what a reader would make of it, so
// that memory and log cannot differ. A large transaction only stages.
func (tx *transaction) write(k kind, payload func([]byte) []byte, one change) error {
	if !tx.large {
		written, err := tx.log.append(k, payload)
		if err != nil {
			return err
		}
		read, ok := decodeChange(k, written, tx.schema.Dimension)
		if !ok {
			return errors.New("a record cannot be read back")
		}
		one = read
	}
	tx.stage(one)
	return nil
}

func (tx *transaction) stage(one change) {
	for _, id := range one.delete {
		delete(tx.rows.place, id)
		tx.spilt.remove(id)
		tx.gone[id] = struct{}{}
	}
	if one.put != nil {
		for _, r := range one.put.rows {
			tx.spilt.remove(r.id)
		}
		tx.rows.add(one.put, tx.schema.Dimension)
	}
}

// spill makes a transaction with many rows a large one, and writes its rows to a
// file where they are too many for memory.
func (c *collection) spill(tx *transaction) error {
	full := func(times int) bool {
		return len(tx.rows.rows) > times*c.limits.rows || tx.rows.bytes > int64(times)*c.limits.bytes
	}
	tx.large = tx.large || full(1)
	if !full(c.limits.spill) {
		return nil
	}
	s, err := c.writeFile([]input{{source: tx.rows.source(c.now.Load().analyzer)}})
	if err == nil {
		tx.spilt.parts, tx.spilt.owned = append(tx.spilt.parts, wholePart(s)), append(tx.spilt.owned, false)
	}
	return err
}

// undo drops the staged changes because of an error, and returns it with
// advice. Until the collection is opened again it takes no changes: a writer
// that went on would commit only the later ones.
func (c *collection) undo(cause error) error {
	c.rollback(!errors.Is(cause, errUnsure))
	c.dropped = true
	return fmt.Errorf("write collection %q: %w; it is as it was at the last commit", c.name, explain(cause))
}

// rollback drops the staged changes. What it cannot cut off the log or remove,
// the next writer does, and all of it where it is not sure which log stands.
func (c *collection) rollback(sure bool) {
	if err := c.staged.log.f.Truncate(c.staged.start); err != nil {
		c.log.Warn("could not cut uncommitted changes off the log", "collection", c.name, "error", err)
	}
	if sure {
		c.sweep()
	}
	c.end()
}

// close drops what was not committed and what is in memory.
func (c *collection) close() {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.staged != nil {
		c.rollback(true)
	}
	c.now.Store(nil)
}

// end closes the transaction.
func (c *collection) end() {
	c.staged.log.f.Close()
	c.staged.lock.Close()
	c.staged = nil
	c.busy.Store(false)
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
