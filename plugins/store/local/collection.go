package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/analyze"
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

	// now is what a search reads. It waits for nobody.
	now atomic.Pointer[snapshot] // nil: not opened yet
}

func (c *collection) path() string { return filepath.Join(c.dir, "log") }

// open reads the committed state, unless this process has it already, and drops
// what is staged. Beside a change that is under way it does neither.
func (c *collection) open(schema sdk.Schema) (sdk.Collection, error) {
	if schema.Dimension < 0 || schema.Dimension > maxDimension {
		return sdk.Collection{}, sdk.Invalid(fmt.Errorf("vectors of %d dimensions: the most is %d", schema.Dimension, maxDimension))
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

func (c *collection) opened(s *snapshot, schema sdk.Schema) (sdk.Collection, error) {
	if err := c.fits(s.state, schema); err != nil {
		return sdk.Collection{}, err
	}
	return sdk.Collection{Entries: s.living, Dimension: schema.Dimension, Note: slices.Clone(s.note)}, nil
}

// refresh brings the state up to what the log says now.
func (c *collection) refresh(schema sdk.Schema) error {
	for try := 0; ; try++ {
		err := c.tryRefresh(schema)
		// A writer that rolls back while the file is read looks like damage. It
		// does not twice in a row. One that merges removes the files that the log
		// listed a moment ago.
		var broken *damaged
		if errors.As(err, &broken) && broken.path == c.path() && try < 1 || errors.Is(err, errMissing) && try < 5 {
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
	if now.end == 0 {
		now.schema = schema
	}
	old := c.now.Load()
	if old != nil && now.same(old.state) && now.schema == old.schema {
		return nil
	}
	if err := c.fits(now, schema); err != nil {
		return err
	}
	next, err := c.emptySnapshot(now)
	if err != nil {
		return err
	}
	if now.end > 0 {
		if next, err = c.replay(f, next, old); err != nil {
			return err
		}
	}
	c.now.Store(next)
	return nil
}

// look opens the log and finds its last commit. Without a log both are zero.
func (c *collection) look() (*os.File, state, error) {
	f, err := os.Open(c.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, state{}, nil
	}
	if err != nil {
		return nil, state{}, err
	}
	var known state
	if s := c.now.Load(); s != nil {
		known = s.state
	}
	s, err := inspect(f, known)
	if err != nil {
		f.Close()
		return nil, state{}, err
	}
	return f, s, nil
}

// fits reports whether a collection can be used with a schema.
func (c *collection) fits(s state, schema sdk.Schema) error {
	switch have := s.schema; {
	case have.Dimension != schema.Dimension:
		return sdk.Invalid(fmt.Errorf("collection %q has vectors of %d dimensions and the embedder gives %d: build it anew, under another name or in another state folder", c.name, have.Dimension, schema.Dimension))
	case have.Analyzer != schema.Analyzer:
		return sdk.Invalid(fmt.Errorf("collection %q was built with analyzer %q, not %q: build it anew, under another name or in another state folder", c.name, have.Analyzer, schema.Analyzer))
	}
	return nil
}

func (c *collection) emptySnapshot(now state) (*snapshot, error) {
	s := &snapshot{state: now, kernel: simd.Best(), k1: c.config.K1, b: c.config.B}
	if now.schema.Analyzer != "" {
		analyzer, err := analyze.Named(now.schema.Analyzer)
		if err != nil {
			return nil, sdk.Invalid(err)
		}
		s.analyzer = &analyzer
	}
	return s, nil
}

// read calls do with the committed state. Until it returns, what do works on
// stays in memory; what it returns must not be part of a segment.
func (c *collection) read(do func(s *snapshot) error) error {
	s := c.now.Load()
	if s == nil {
		return c.notOpen()
	}
	defer runtime.KeepAlive(s)
	return do(s)
}

func (c *collection) notOpen() error {
	return sdk.Invalid(fmt.Errorf("collection %q is not open", c.name))
}

func (c *collection) search(ctx context.Context, ask sdk.Search, queries []sdk.Query) (hits []sdk.Hits, err error) {
	err = c.read(func(s *snapshot) error {
		hits, err = s.search(ctx, ask, queries)
		return err
	})
	return hits, err
}

func (c *collection) get(ids []string) (entries []sdk.Entry, err error) {
	entries = make([]sdk.Entry, len(ids))
	err = c.read(func(s *snapshot) error {
		for i, id := range ids {
			if p, r, ok := s.find(id); ok {
				entries[i] = p.entry(r, true)
			}
		}
		return nil
	})
	return entries, err
}

func (c *collection) scan(ask sdk.Scan) (page sdk.Page, err error) {
	after := uint64(0)
	if ask.After != "" {
		if after, err = strconv.ParseUint(ask.After, 10, 64); err != nil {
			return page, sdk.Invalid(fmt.Errorf("%q is not a place in a collection: use Next of the page before", ask.After))
		}
	}
	err = c.read(func(s *snapshot) error {
		page = s.page(ask, after)
		return nil
	})
	return page, err
}
