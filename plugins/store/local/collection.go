package local

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/racflow/racflow/plugins/store/local/internal/integrity"
	"github.com/racflow/racflow/plugins/store/local/internal/row"
	"github.com/racflow/racflow/plugins/store/local/internal/search"
	"github.com/racflow/racflow/plugins/store/local/internal/snapshot"
	"github.com/racflow/racflow/plugins/store/local/internal/wal"
	"github.com/racflow/racflow/sdk"
)

// collection is one collection that this process has opened.
type collection struct {
	name, dir string
	config    config
	limits    limits
	log       *slog.Logger

	// writing is held by whoever changes the collection or opens it, and guards
	// staged and dropped.
	writing sync.Mutex
	staged  *transaction // nil: no change since the last commit
	dropped bool         // an error undid changes and the writer may not know
	busy    atomic.Bool  // staged is not nil: nobody else can have written

	// Now is what a search reads. It waits for nobody.
	now atomic.Pointer[version] // nil: not opened yet
}

// version is a collection at one commit.
type version struct {
	wal.State
	*search.Searcher
}

func (c *collection) version(now wal.State, s *snapshot.Snapshot) *version {
	return &version{now, search.New(s, c.config.K1, c.config.B)}
}

func (c *collection) path() string { return filepath.Join(c.dir, "log") }

// open reads the committed state, unless this process has it already, and drops
// what is staged. Beside a change that is under way it does neither.
func (c *collection) open(schema sdk.Schema) (sdk.Collection, error) {
	if schema.Dimension < 0 || schema.Dimension > row.MaxDimension {
		return sdk.Collection{}, sdk.Invalid(fmt.Errorf("vectors of %d dimensions: the most is %d", schema.Dimension, row.MaxDimension))
	}
	for !c.writing.TryLock() {
		if s := c.now.Load(); s != nil && c.busy.Load() {
			return c.opened(s, schema) // a commit may take long, and what it will give is not there yet
		}
		time.Sleep(time.Millisecond)
	}
	defer c.writing.Unlock()
	if c.staged != nil {
		c.rollback(true)
	}
	if err := c.refresh(schema); err != nil {
		return sdk.Collection{}, err
	}
	found, err := c.opened(c.now.Load(), schema)
	if err == nil {
		c.dropped = false
	}
	return found, err
}

func (c *collection) opened(s *version, schema sdk.Schema) (sdk.Collection, error) {
	if err := c.fits(s.State, schema); err != nil {
		return sdk.Collection{}, err
	}
	return sdk.Collection{Entries: s.Live, Dimension: schema.Dimension, Note: slices.Clone(s.Note)}, nil
}

// refresh brings the state up to what the log says now.
func (c *collection) refresh(schema sdk.Schema) error {
	for try := 0; ; try++ {
		err := c.tryRefresh(schema)
		// A writer that rolls back while the file is read looks like damage. It
		// does not twice in a row. One that merges removes the files that the log
		// listed a moment ago.
		var broken *integrity.Error
		if errors.As(err, &broken) && broken.Path == c.path() && try < 1 || errors.Is(err, errMissing) && try < 5 {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		return err
	}
}

func (c *collection) tryRefresh(schema sdk.Schema) error {
	f, now, err := c.look()
	if err != nil {
		return err
	}
	defer f.Close() // of nil: an error that does not matter
	if now.End == 0 {
		now.Schema = schema
	}
	old := c.now.Load()
	if old != nil && now.Same(old.State) && now.Schema == old.Schema {
		return nil
	}
	if err := c.fits(now, schema); err != nil {
		return err
	}
	empty, err := snapshot.Empty(now.Schema)
	if err != nil {
		return err
	}
	next := c.version(now, empty)
	if now.End > 0 {
		if next, err = c.replay(f, next, old); err != nil {
			return err
		}
	}
	c.now.Store(next)
	return nil
}

// look opens the log and finds its last commit. Without a log both are zero.
func (c *collection) look() (*os.File, wal.State, error) {
	f, err := os.Open(c.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, wal.State{}, nil
	}
	if err != nil {
		return nil, wal.State{}, err
	}
	var known wal.State
	if s := c.now.Load(); s != nil {
		known = s.State
	}
	s, err := wal.Inspect(f, known)
	if err != nil {
		f.Close()
		return nil, wal.State{}, err
	}
	return f, s, nil
}

// fits reports whether a collection can be used with a schema.
func (c *collection) fits(s wal.State, schema sdk.Schema) error {
	switch have := s.Schema; {
	case have.Dimension != schema.Dimension:
		return sdk.Invalid(fmt.Errorf("collection %q has vectors of %d dimensions and the embedder gives %d: build it anew, under another name or in another state folder", c.name, have.Dimension, schema.Dimension))
	case have.Analyzer != schema.Analyzer:
		return sdk.Invalid(fmt.Errorf("collection %q was built with analyzer %q, not %q: build it anew, under another name or in another state folder", c.name, have.Analyzer, schema.Analyzer))
	}
	return nil
}

// read calls do with the committed version. Until it returns, what do works on
// stays in memory; what it returns must not be part of a segment.
func read[T any](c *collection, do func(*version) (T, error)) (found T, err error) {
	s := c.now.Load()
	if s == nil {
		return found, c.notOpen()
	}
	defer runtime.KeepAlive(s)
	return do(s)
}

func (c *collection) notOpen() error {
	return sdk.Invalid(fmt.Errorf("collection %q is not open", c.name))
}
