package milvus

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/analyze"
	"github.com/racflow/racflow/sdk/backoff"
)

const (
	// fresh is how long a reader goes by what it knows of the last commit.
	fresh = 2 * time.Second
	// grace is how long the dead rows of a commit are kept for readers that do
	// not know of it yet. A read that took half of it looks whether it was fast
	// enough.
	grace = 2 * time.Minute
)

// collection is one collection that this process has opened.
type collection struct {
	name, table string // table: its name on the server
	server      *server
	log         *slog.Logger

	// writing is held by whoever changes the collection or opens it, and guards
	// staged and dropped.
	writing sync.Mutex
	staged  *transaction // nil: no change since the last commit
	dropped bool         // an error undid changes and the writer may not know

	// looking is held by the reader that looks for a newer record.
	looking sync.Mutex

	// crowded is the number of a commit whose searches the rows that are not of it
	// disturb.
	crowded atomic.Int64

	// mu guards what a read begins with.
	mu     sync.RWMutex
	exists bool   // on the server
	state  *state // nil: not opened yet
}

// open finds the collection on the server and reads its last commit. It is
// created by the first change.
func (c *collection) open(ctx context.Context, schema sdk.Schema) (sdk.Collection, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	has := shape{schema: schema}
	if schema.Analyzer != "" {
		a, err := analyze.Named(schema.Analyzer)
		if err != nil {
			return sdk.Collection{}, sdk.Invalid(err)
		}
		has.analyzer = &a
	}
	described, err := c.describe(ctx, schema)
	if err != nil {
		return sdk.Collection{}, err
	}
	if c.staged != nil {
		c.rollback(ctx)
	}
	s := emptyState(has)
	if described != nil {
		if err := c.prepare(ctx, schema); err != nil {
			return sdk.Collection{}, err
		}
		has.indexType = c.indexed(ctx, fieldVector)
		if s, err = c.settle(ctx, has, c.known()); err != nil {
			return sdk.Collection{}, err
		}
	}
	c.dropped = false
	c.mu.Lock()
	defer c.mu.Unlock()
	c.exists, c.state = described != nil, s
	return sdk.Collection{Entries: s.record.Entries, Dimension: schema.Dimension, Note: slices.Clone(s.note)}, nil
}

func emptyState(has shape) *state {
	return &state{df: map[uint32]uint32{}, dead: map[int64]struct{}{}, shape: has, seen: time.Now()}
}

// known is the state that this process has, or nil.
func (c *collection) known() *state {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.state
}

// settle reads the last commit, again if one comes in between.
func (c *collection) settle(ctx context.Context, has shape, old *state) (*state, error) {
	for try := 1; ; try++ {
		s, err := c.readState(ctx, has, old)
		if err == nil || try == 5 || sdk.CodeOf(err) != sdk.CodeTransient {
			return s, err
		}
		if err := backoff.Sleep(ctx, pauses.Delay(try+1)); err != nil {
			return nil, err
		}
	}
}

// current is the last commit, as far as a reader has to know.
func (c *collection) current(ctx context.Context) (*state, error) {
	s := c.known()
	if s == nil {
		return nil, c.notOpen()
	}
	if time.Since(s.seen) < fresh || !c.isThere() {
		return s, nil
	}
	c.looking.Lock()
	defer c.looking.Unlock()
	if s = c.known(); time.Since(s.seen) < fresh {
		return s, nil
	}
	newer, err := c.settle(ctx, s.shape, s)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.record.Commit <= newer.record.Commit { // else this process has committed meanwhile
		c.state = newer
	}
	return c.state, nil
}

func (c *collection) isThere() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.exists
}

// read calls do with the last commit, again if do took so long that rows of
// the commit may have been removed meanwhile.
func (c *collection) read(ctx context.Context, do func(s *state) error) error {
	for {
		s, err := c.current(ctx)
		if err != nil {
			return err
		}
		if err := do(s); err != nil {
			return err
		}
		if time.Since(s.seen) < grace/2 || !c.isThere() {
			return nil
		}
		newer, err := c.current(ctx)
		if err != nil || newer.record.Commit == s.record.Commit {
			return err
		}
	}
}

func (c *collection) notOpen() error {
	return sdk.Invalid(fmt.Errorf("collection %q is not open", c.name))
}

// close drops what was not committed.
func (c *collection) close() {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.staged != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		c.rollback(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = nil
}
