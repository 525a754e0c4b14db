package local

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/plugins/internal/store/segment"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// transaction holds the changes since the last commit.
type transaction struct {
	*segment.Staged                     // its parts are the files that were written before the commit
	gone            map[string]struct{} // ids to remove from the committed rows
	lock            *support.File
	log             *segment.Appender
	start           int64 // where its first frame begins
	next            uint64
	large           bool // it no longer writes to the log
	dimension       int
}

// begin starts a transaction unless one is running. It takes the lock, checks that nobody else has written since this
// process read, and cuts off leftovers of a killed writer.
func (c *collection) begin() (err error) {
	if c.staged != nil {
		return nil
	}
	known := c.now.Load()
	if known == nil {
		return c.notOpen()
	}
	if c.dropped {
		return fmt.Errorf("collection %q lost its uncommitted changes to an earlier error: open it again and make them anew", c.name)
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return explain(err)
	}
	lock, err := c.takeLock()
	if err != nil {
		return explain(err)
	}
	defer func() {
		if err != nil {
			lock.Close()
		}
	}()
	f, now, err := c.readLog()
	if err != nil {
		return err
	}
	f.Close() // f may be nil; then Close only returns an error
	if !now.Same(known.LogState) {
		return sdk.Transient(fmt.Errorf("collection %q was changed by another process since it was opened: open it again", c.name), 0)
	}
	c.sweep()
	a, err := c.openLog(known)
	if err != nil {
		return fmt.Errorf("write collection %q: %w", c.name, explain(err))
	}
	c.staged = &transaction{
		Staged: segment.NewStaged(nil, known.Analyzer), gone: map[string]struct{}{},
		lock: lock, log: a, start: a.End, next: known.Next, dimension: known.Dimension,
	}
	c.busy.Store(true)
	return nil
}

// openLog opens the log at the end of its last commit, or creates a new one.
func (c *collection) openLog(known *version) (*segment.Appender, error) {
	if known.End > 0 {
		f, err := support.OpenFile(c.path(), os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		if err := f.Truncate(known.End); err != nil {
			f.Close()
			return nil, err
		}
		return &segment.Appender{F: f, ID: known.ID, Sync: c.config.Sync, End: known.End}, nil
	}
	a, err := segment.CreateLog(c.path()+".new", known.Schema, c.config.Sync)
	if err != nil {
		return nil, err
	}
	if err := a.Rename(c.path()); err != nil {
		a.F.Close()
		return nil, err
	}
	if c.config.Sync {
		if err := support.SyncFolder(filepath.Dir(c.dir)); err != nil {
			a.F.Close()
			return nil, err
		}
	}
	return a, nil
}

// takeLock makes this process the only writer of the collection, until it closes the file or ends.
func (c *collection) takeLock() (*support.File, error) {
	path := filepath.Join(c.dir, "lock")
	f, err := support.OpenLock(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, support.ErrBusy) {
		holder, _ := os.ReadFile(path)
		err = sdk.Transient(fmt.Errorf("collection %q is being written by process %s: wait until it is done", c.name, strings.TrimSpace(string(holder))), time.Second)
	}
	if err != nil {
		return nil, err
	}
	if err = f.Truncate(0); err == nil {
		_, err = fmt.Fprintln(f, os.Getpid())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// smallLog is the size in bytes up to which a log is not rewritten.
const smallLog = 64 << 10

// commit makes the staged changes durable, then visible. Then it merges segments that are due. Searches continue
// meanwhile.
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
		// The commit is valid; the next commit tries to merge again.
		c.log.Warn("could not merge segments", "collection", c.name, "error", err)
	}
	c.end()
	return nil
}

// advance makes the staged changes durable and returns the version with them.
func (c *collection) advance(tx *transaction, note []byte) (*version, error) {
	old := c.now.Load()
	parts := c.survivors(old, tx)
	now := segment.LogState{ID: tx.log.ID, Schema: old.Schema, Base: old.Base, Listed: old.Listed, Next: tx.next, Note: note}
	if now.Base == 0 {
		now.Base = tx.start
	}
	files := segment.SnapshotFiles(parts)
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

// survivors returns the committed parts without deleted and replaced rows.
func (c *collection) survivors(old *version, tx *transaction) []segment.Part {
	kept := segment.NewRemover(old.Parts, old.Analyzer)
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

// toFiles writes all rows in memory to files. The parts keep the order of their sequence numbers.
func (c *collection) toFiles(parts []segment.Part, tx *transaction) ([]segment.Part, error) {
	files := segment.SnapshotFiles(parts)
	inputs := segment.Inputs(parts[files:])
	parts = slices.Clip(parts[:files])
	write := func() error {
		if len(inputs) == 0 {
			return nil
		}
		s, err := c.writeFile(inputs)
		if err == nil {
			parts = append(parts, segment.WholeSnapshot(s))
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

// tidy merges file segments that are due, replaces the log if much of it is superseded, and removes files that are no
// longer needed.
func (c *collection) tidy() error {
	err := c.merge()
	if !errors.Is(err, segment.ErrUnsure) {
		c.sweep()
	}
	return err
}

func (c *collection) merge() error {
	now := c.now.Load()
	parts, files := now.Parts, segment.SnapshotFiles(now.Parts)
	if first := segment.MergeDue(parts[:files]); first >= 0 {
		s, err := c.writeFile(segment.Inputs(parts[first:files]))
		if err != nil {
			return err
		}
		parts = slices.Concat(parts[:first], []segment.Part{segment.WholeSnapshot(s)}, parts[files:])
	} else if files == len(now.Listed) && !wasteful(now) {
		return nil
	}
	next, err := c.checkpoint(now.LogState, now.With(parts))
	if err == nil {
		c.now.Store(next)
	}
	return err
}

// wasteful reports whether a new log would take at most half the space.
func wasteful(s *version) bool {
	var live int64
	for i := range s.Parts {
		live += s.Parts[i].Logged
	}
	return s.End-s.Base > smallLog && s.End-s.Base > 2*live+s.Base
}

// countable returns an error if parts have more rows than can be numbered.
func countable(parts []segment.Part) error {
	rows := 0
	for i := range parts {
		rows += parts[i].Segment.Rows
	}
	if rows > segment.MaxRows {
		return fmt.Errorf("a collection has at most %d rows", segment.MaxRows)
	}
	return nil
}

// limits say when rows in memory are written to a file.
type limits struct {
	rows  int   // in memory
	bytes int64 // of the log behind its base, and so of rows in memory
	// A transaction beyond these limits stops writing to the log. It writes its rows to a file whenever they exceed
	// the limits times spill.
	spill int
}

func defaultLimits() limits { return limits{rows: 16 << 10, bytes: 32 << 20, spill: 4} }

// frameBytes bounds the size of a frame, and so of a single read.
const frameBytes = 8 << 20

// change makes changes and stages them. On failure, all changes since the last commit are undone. The caller holds
// c.writing.
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
		rows := func(yield func(segment.Row, []float32) bool) {
			var vector []float32
			for _, e := range entries {
				meta, _ := segment.AppendMeta(nil, e.Meta) // Put has validated it
				vector, _ = segment.Normalise(vector[:0], e.Vector)
				r := segment.Row{Sequence: tx.next, ID: e.ID, Label: e.Label, Hash: string(e.Hash), Context: e.Context, Text: e.Text, Meta: string(meta)}
				tx.next++
				if !yield(r, vector) {
					return
				}
			}
		}
		return batches(rows, func(p *segment.Batch) error {
			if err := tx.write(segment.Change{Put: p}); err != nil {
				return err
			}
			return c.spill(tx)
		})
	})
}

// batches calls do with batches of rows and vectors, each about the size of a frame.
func batches(rows iter.Seq2[segment.Row, []float32], do func(*segment.Batch) error) error {
	p, size := &segment.Batch{}, int64(0)
	for r, vector := range rows {
		p.Rows = append(p.Rows, r)
		p.Vectors.Append(vector)
		if size += r.Size(&p.Vectors, len(p.Rows)-1); size >= frameBytes {
			if err := do(p); err != nil {
				return err
			}
			p, size = &segment.Batch{}, 0
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
			if err := tx.write(segment.Change{Delete: part}); err != nil {
				return err
			}
		}
		return nil
	})
}

// write appends a change to the log, and stages the change as a reader of the log would. So memory and log cannot
// differ. A large transaction only stages.
func (tx *transaction) write(one segment.Change) (err error) {
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

// spill turns a transaction with many rows into a large one. It writes the rows to a file if they are too many for
// memory.
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
		tx.Parts.Add(segment.WholeSnapshot(s))
	}
	return err
}

// undo drops the staged changes because of an error, and returns the error with advice. The collection then takes no
// changes until it is opened again: otherwise a writer that continued would commit only the later changes.
func (c *collection) undo(cause error) error {
	c.rollback(!errors.Is(cause, segment.ErrUnsure))
	c.dropped = true
	return fmt.Errorf("write collection %q: %w; it is as it was at the last commit", c.name, explain(cause))
}

// rollback drops the staged changes. The next writer removes what rollback cannot cut off or remove. If it is unclear
// which log counts (sure is false), rollback leaves everything to the next writer.
func (c *collection) rollback(sure bool) {
	if err := c.staged.log.F.Truncate(c.staged.start); err != nil {
		c.log.Warn("could not cut uncommitted changes off the log", "collection", c.name, "error", err)
	}
	if sure {
		c.sweep()
	}
	c.end()
}

// close drops uncommitted changes and the content of memory.
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

// explain adds advice about a full disk.
func explain(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("the disk is full (%w): free some space and try again", err)
	}
	return err
}

func notFinite(x float32) bool { return !(math.Abs(float64(x)) <= math.MaxFloat32) }

// validate reports the first entry that does not fit the collection.
func validate(schema sdk.Schema, entries []sdk.Entry) error {
	for i, e := range entries {
		if e.ID == "" {
			return fmt.Errorf("entry %d of the batch has no id", i)
		}
		if len(e.Vector) != schema.Dimension {
			return fmt.Errorf("entry %q has a vector of %d dimensions and the collection's have %d", e.ID, len(e.Vector), schema.Dimension)
		}
		if square := simd.Dot(e.Vector, e.Vector); !(square <= math.MaxFloat32) && slices.ContainsFunc(e.Vector, notFinite) { // or just the sum is too large
			return fmt.Errorf("entry %q has NaN or an infinity in its vector", e.ID)
		}
		if _, ok := segment.AppendMeta(nil, e.Meta); !ok {
			return fmt.Errorf("entry %q has metadata that is neither string, float64 nor bool", e.ID)
		}
	}
	return nil
}
