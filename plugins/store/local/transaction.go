package local

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
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
		p := &batch{}
		size := 0
		for i, e := range entries {
			meta, _ := appendMeta(nil, e.Meta) // checked before
			p.sequence = append(p.sequence, tx.next)
			p.id = append(p.id, e.ID)
			p.label = append(p.label, e.Label)
			p.hash = append(p.hash, string(e.Hash))
			p.context = append(p.context, e.Context)
			p.text = append(p.text, e.Text)
			p.meta = append(p.meta, string(meta))
			p.vectors, _ = normalise(p.vectors, e.Vector)
			tx.next++
			size += rowOverhead + len(e.ID) + len(e.Label) + len(e.Hash) + len(e.Context) + len(e.Text) + len(meta) + 4*len(e.Vector)
			if size < frameBytes && i+1 < len(entries) {
				continue
			}
			if err := tx.write(kindPut, func(b []byte) []byte { return appendPut(b, p) }, len(e.Vector)); err != nil {
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

// begin starts a transaction unless one is under way: it takes the lock, makes
// sure that nobody else wrote since this process read, and cuts off what a
// killed writer left behind.
func (c *collection) begin() (err error) {
	if c.staged != nil {
		return nil
	}
	if c.table == nil {
		return c.notOpen()
	}
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return explain(err)
	}
	lock, err := c.takeLock()
	if err != nil {
		return explain(err)
	}
	defer func() {
		if err != nil {
			releaseLock(lock)
		}
	}()
	f, now, err := c.look()
	if err != nil {
		return err
	}
	f.Close() // of nil: an error that does not matter
	if !now.same(c.state) {
		return sdk.Transient(fmt.Errorf("collection %q was changed by another process since it was opened: open it again", c.name), 0)
	}
	a, err := c.openLog()
	if err != nil {
		return fmt.Errorf("write collection %q: %w", c.name, explain(err))
	}
	c.staged = &transaction{lock: lock, log: a, start: a.end, next: c.table.next}
	return nil
}

// openLog opens the log at the end of its last commit, or makes a new one.
func (c *collection) openLog() (*appender, error) {
	if c.state.end > 0 {
		f, err := os.OpenFile(c.path(), os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		if err := f.Truncate(c.state.end); err != nil {
			f.Close()
			return nil, err
		}
		return &appender{f: f, sync: c.config.Sync, end: c.state.end}, nil
	}
	a, err := createLog(c.path()+".new", c.state.schema, c.config.Sync)
	if err != nil {
		return nil, err
	}
	if err := a.rename(c.path()); err != nil {
		a.f.Close()
		return nil, err
	}
	if c.config.Sync {
		if err := syncDir(filepath.Dir(c.dir)); err != nil {
			a.f.Close()
			return nil, err
		}
	}
	return a, nil
}

// commit makes the staged changes durable, then visible.
func (c *collection) commit(note []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.staged == nil && c.table != nil && c.state.end > 0 && bytes.Equal(note, c.state.note) {
		return nil
	}
	if err := c.begin(); err != nil {
		return err
	}
	tx := c.staged
	id, err := readHeader(tx.log.f)
	if err == nil {
		err = tx.log.commit(tx.next, note)
	}
	if err != nil {
		return c.undo(err)
	}
	c.mu.Lock()
	for _, change := range tx.changes {
		c.table.apply(change)
	}
	c.table.next = tx.next
	c.state = state{id: id, schema: c.state.schema, end: tx.log.end, next: tx.next, note: slices.Clone(note)}
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

// undo drops the staged changes because of an error, and returns it with advice.
func (c *collection) undo(cause error) error {
	c.rollback()
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
