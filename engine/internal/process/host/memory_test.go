package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/racflow/racflow/sdk"
)

type memoryConfig struct {
	Collection string `config:"collection" doc:"Its file, which another program makes."`
}

// memoryStore is a store that keeps entries in memory and writes them to a file at Commit. If the
// process ends, uncommitted entries are lost. An attached collection is such a file; its ID is its note.
type memoryStore struct {
	theirs string
	dir    string
	mu     sync.Mutex
	open   map[string]*collection
}

type collection struct {
	Committed map[string]sdk.Entry
	Note      []byte
	pending   map[string]*sdk.Entry // nil: deleted
}

func newMemory(dir string) *memoryStore {
	return &memoryStore{dir: dir, open: map[string]*collection{}}
}

func (m *memoryStore) file(name string) string { return filepath.Join(m.dir, name+".json") }

func (m *memoryStore) Open(_ context.Context, name string, s sdk.Schema) (sdk.Collection, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &collection{Committed: map[string]sdk.Entry{}, pending: map[string]*sdk.Entry{}}
	raw, err := os.ReadFile(m.file(name))
	if err == nil {
		err = json.Unmarshal(raw, c)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return sdk.Collection{}, err
	}
	m.open[name] = c
	return sdk.Collection{Entries: len(c.Committed), Dimension: s.Dimension, Note: c.Note}, nil
}

func (m *memoryStore) Attach(ctx context.Context) (sdk.Attached, error) {
	if _, err := os.Stat(m.file(m.theirs)); err != nil {
		return sdk.Attached{}, sdk.Invalid(&sdk.ArgumentError{Argument: "collection", Err: fmt.Errorf("there is no file of %s", m.theirs)})
	}
	c, err := m.Open(ctx, m.theirs, sdk.Schema{Dimension: 1})
	return sdk.Attached{Name: m.theirs, ID: string(c.Note), Entries: c.Entries, Dimension: 1}, err
}

func (m *memoryStore) with(name string, do func(*collection) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.open[name]
	if !ok {
		return errors.New("the collection is not open")
	}
	return do(c)
}

func (m *memoryStore) Put(_ context.Context, name string, entries []sdk.Entry) error {
	return m.with(name, func(c *collection) error {
		for _, e := range entries {
			if e.Text == "crash" {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
			c.pending[e.ID] = &e
		}
		return nil
	})
}

func (m *memoryStore) Delete(_ context.Context, name string, ids []string) error {
	return m.with(name, func(c *collection) error {
		for _, id := range ids {
			c.pending[id] = nil
		}
		return nil
	})
}

func (m *memoryStore) Commit(_ context.Context, name string, note []byte) error {
	return m.with(name, func(c *collection) error {
		for id, e := range c.pending {
			if e == nil {
				delete(c.Committed, id)
			} else {
				c.Committed[id] = *e
			}
		}
		clear(c.pending)
		c.Note = note
		raw, err := json.Marshal(c)
		if err != nil {
			return err
		}
		return os.WriteFile(m.file(name), raw, 0o600)
	})
}

// Search returns the IDs of all committed entries for each query, in the order of their dense scores.
// It has no lexical leg.
func (m *memoryStore) Search(_ context.Context, name string, s sdk.Search, queries []sdk.Query) ([]sdk.Hits, error) {
	out := make([]sdk.Hits, len(queries))
	return out, m.with(name, func(c *collection) error {
		for i, q := range queries {
			if q.Text == "crash" {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
			for _, id := range slices.Sorted(maps.Keys(c.Committed)) {
				out[i].Dense = append(out[i].Dense, sdk.Hit{ID: id, Dense: c.Committed[id].Vector[0] * q.Vector[0], Lexical: sdk.Unscored})
			}
			slices.SortStableFunc(out[i].Dense, func(a, b sdk.Hit) int { return int(100 * (b.Dense - a.Dense)) })
		}
		return nil
	})
}

func (m *memoryStore) Get(_ context.Context, name string, ids []string) ([]sdk.Entry, error) {
	out := make([]sdk.Entry, len(ids))
	return out, m.with(name, func(c *collection) error {
		for i, id := range ids {
			out[i] = c.Committed[id]
			out[i].Vector = nil
		}
		return nil
	})
}

func (m *memoryStore) Scan(_ context.Context, name string, s sdk.Scan) (sdk.Page, error) {
	var page sdk.Page
	err := m.with(name, func(c *collection) error {
		for _, id := range slices.Sorted(maps.Keys(c.Committed)) {
			if id <= s.After {
				continue
			}
			if len(page.Entries) == s.Limit {
				page.Next = page.Entries[len(page.Entries)-1].ID
				break
			}
			page.Entries = append(page.Entries, c.Committed[id])
		}
		return nil
	})
	return page, err
}

// List is not needed here.
func (m *memoryStore) List(context.Context) ([]sdk.Collection, error) {
	return nil, errors.ErrUnsupported
}

func (m *memoryStore) Drop(context.Context, string) error { return errors.ErrUnsupported }
