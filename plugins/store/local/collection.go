package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/analyze"
)

// collection is one collection that this process has opened.
type collection struct {
	name, dir string
	config    config
	log       *slog.Logger

	// writing is held by whoever changes the collection or opens it, and guards
	// staged and dropped.
	writing sync.Mutex
	staged  *transaction // nil: no change since the last commit
	dropped bool         // an error undid changes and the writer may not know

	// mu guards what a search reads. It is held for writing only while a commit
	// or another state takes the place of the one before.
	mu    sync.RWMutex
	state state
	table *table // nil: not opened yet
}

func (c *collection) path() string { return filepath.Join(c.dir, "log") }

// open reads the committed state, unless this process has it already.
func (c *collection) open(schema sdk.Schema) (sdk.Collection, error) {
	if schema.Dimension < 0 || schema.Dimension > maxDimension {
		return sdk.Collection{}, sdk.Invalid(fmt.Errorf("vectors of %d dimensions: the most is %d", schema.Dimension, maxDimension))
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.staged == nil {
		if err := c.refresh(schema); err != nil {
			return sdk.Collection{}, err
		}
	}
	if err := c.fits(c.state, schema); err != nil {
		return sdk.Collection{}, err
	}
	c.dropped = false
	return sdk.Collection{Entries: len(c.table.place), Dimension: schema.Dimension, Note: slices.Clone(c.state.note)}, nil
}

// refresh brings the state up to what the log says now.
func (c *collection) refresh(schema sdk.Schema) error {
	var broken *damaged
	err := c.tryRefresh(schema)
	if errors.As(err, &broken) {
		// A writer that rolls back while the file is read looks like damage. It
		// does not twice in a row.
		time.Sleep(50 * time.Millisecond)
		err = c.tryRefresh(schema)
	}
	return err
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
	if c.table != nil && now.same(c.state) && now.schema == c.state.schema {
		return nil
	}
	if err := c.fits(now, schema); err != nil {
		return err
	}
	t, err := c.emptyTable(schema)
	if err == nil && now.end > 0 {
		err = replay(f, now, t)
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state, c.table = now, t
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
	s, err := inspect(f, c.state)
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

func (c *collection) emptyTable(schema sdk.Schema) (*table, error) {
	if schema.Analyzer == "" {
		return newTable(schema.Dimension, nil), nil
	}
	analyzer, err := analyze.Named(schema.Analyzer)
	if err != nil {
		return nil, sdk.Invalid(err)
	}
	return newTable(schema.Dimension, newInverted(analyzer, c.config.K1, c.config.B)), nil
}

// read calls do with the committed state, which does not change meanwhile.
func (c *collection) read(do func(t *table) error) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.table == nil {
		return c.notOpen()
	}
	return do(c.table)
}

func (c *collection) notOpen() error {
	return sdk.Invalid(fmt.Errorf("collection %q is not open", c.name))
}

func (c *collection) search(ctx context.Context, s sdk.Search, queries []sdk.Query) (hits []sdk.Hits, err error) {
	err = c.read(func(t *table) error {
		hits, err = t.search(ctx, s, queries)
		return err
	})
	return hits, err
}

func (c *collection) get(ids []string) (entries []sdk.Entry, err error) {
	entries = make([]sdk.Entry, len(ids))
	err = c.read(func(t *table) error {
		for i, id := range ids {
			if r, ok := t.place[id]; ok {
				entries[i] = t.entry(r, true)
			}
		}
		return nil
	})
	return entries, err
}

func (c *collection) scan(s sdk.Scan) (page sdk.Page, err error) {
	after := uint64(0)
	if s.After != "" {
		if after, err = strconv.ParseUint(s.After, 10, 64); err != nil {
			return page, sdk.Invalid(fmt.Errorf("%q is not a place in a collection: use Next of the page before", s.After))
		}
	}
	err = c.read(func(t *table) error {
		page = t.page(s, after)
		return nil
	})
	return page, err
}
