package local

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"slices"
	"syscall"

	"github.com/racflow/racflow/plugins/store/local/internal/row"
	"github.com/racflow/racflow/plugins/store/local/internal/segment"
	"github.com/racflow/racflow/plugins/store/local/internal/snapshot"
	"github.com/racflow/racflow/plugins/store/local/internal/wal"
	"github.com/racflow/racflow/sdk"
)

// transaction is what was written since the last commit.
type transaction struct {
	*snapshot.Staged                     // its parts are the files written before the commit
	gone             map[string]struct{} // ids to be removed from what is committed
	lock             *os.File
	log              *wal.Appender
	start            int64 // of its first frame
	next             uint64
	large            bool // it no longer writes to the log
	dimension        int
}

// limits say when rows go from memory to a file.
type limits struct {
	rows  int   // in memory
	bytes int64 // of the log behind its base, and so of rows in memory
	// A transaction that is past these stops writing to the log. It writes its
	// rows to a file whenever there are spill times as many.
	spill int
}

func defaultLimits() limits { return limits{rows: 16 << 10, bytes: 32 << 20, spill: 4} }

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
		if err := validate(now.Schema, entries); err != nil {
			return sdk.Invalid(fmt.Errorf("%w; nothing of the batch was put", err))
		}
	}
	return c.change(func(tx *transaction) error {
		rows := func(yield func(row.Row, []float32) bool) {
			var vector []float32
			for _, e := range entries {
				meta, _ := row.AppendMeta(nil, e.Meta) // validated
				vector, _ = row.Normalise(vector[:0], e.Vector)
				r := row.Row{Sequence: tx.next, ID: e.ID, Label: e.Label, Hash: string(e.Hash), Context: e.Context, Text: e.Text, Meta: string(meta)}
				tx.next++
				if !yield(r, vector) {
					return
				}
			}
		}
		return batches(rows, func(p *row.Batch) error {
			if err := tx.write(row.Change{Put: p}); err != nil {
				return err
			}
			return c.spill(tx)
		})
	})
}

// batches calls do with rows and their vectors, about as many at a time as a frame
// should have.
func batches(rows iter.Seq2[row.Row, []float32], do func(*row.Batch) error) error {
	p, size := &row.Batch{}, int64(0)
	for r, vector := range rows {
		p.Rows, p.Vectors = append(p.Rows, r), append(p.Vectors, vector...)
		if size += r.Size(len(vector)); size >= frameBytes {
			if err := do(p); err != nil {
				return err
			}
			p, size = &row.Batch{}, 0
		}
	}
	if len(p.Rows) == 0 {
		return nil
	}
	return do(p)
}

func (c *collection) delete(ids []string) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.change(func(tx *transaction) error {
		for part := range slices.Chunk(ids, 1<<16) {
			if err := tx.write(row.Change{Delete: part}); err != nil {
				return err
			}
		}
		return nil
	})
}

// write appends a change to the log and stages what a reader would make of it, so
// that memory and log cannot differ. A large transaction only stages.
func (tx *transaction) write(one row.Change) (err error) {
	if !tx.large {
		if one, err = tx.log.ChangeAndRead(one, tx.dimension); err != nil {
			return err
		}
	}
	for _, id := range one.Delete {
		tx.gone[id] = struct{}{}
	}
	tx.Apply(one)
	return nil
}

// spill makes a transaction with many rows a large one, and writes its rows to a
// file where they are too many for memory.
func (c *collection) spill(tx *transaction) error {
	full := func(times int) bool {
		return len(tx.Rows.Rows) > times*c.limits.rows || tx.Rows.Bytes > int64(times)*c.limits.bytes
	}
	tx.large = tx.large || full(1)
	if !full(c.limits.spill) {
		return nil
	}
	s, err := c.writeFile([]segment.Input{{Source: tx.Rows.Source(c.now.Load().Analyzer)}})
	if err == nil {
		tx.Parts.Add(snapshot.Whole(s))
	}
	return err
}

// undo drops the staged changes because of an error, and returns it with
// advice. Until the collection is opened again it takes no changes: a writer
// that continued would commit only the later ones.
func (c *collection) undo(cause error) error {
	c.rollback(!errors.Is(cause, wal.ErrUnsure))
	c.dropped = true
	return fmt.Errorf("write collection %q: %w; it is as it was at the last commit", c.name, explain(cause))
}

// rollback drops the staged changes. What it cannot cut off the log or remove is left
// to the next writer, and everything if it is not sure which log counts.
func (c *collection) rollback(sure bool) {
	if err := c.staged.log.F.Truncate(c.staged.start); err != nil {
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
	c.staged.log.F.Close()
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

// validate reports the first entry that the collection cannot take.
func validate(schema sdk.Schema, entries []sdk.Entry) error {
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
		if _, ok := row.AppendMeta(nil, e.Meta); !ok {
			return fmt.Errorf("entry %q has metadata that is neither string, float64 nor bool", e.ID)
		}
	}
	return nil
}
