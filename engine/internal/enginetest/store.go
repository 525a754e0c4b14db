package enginetest

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/flat"
)

// Memory is a store that compares everything with everything. Stores with the same state folder have
// the same collections.
func Memory() sdk.Stage {
	var places sync.Map // by folder
	return sdk.StoreStage("memory", "Everything in a map.", func(_ context.Context, setup sdk.Setup, _ none) (sdk.Store, error) {
		p, _ := places.LoadOrStore(setup.StateDir, &place{contents: map[string][]byte{}})
		return &memory{flat.New(p.(*place)), p.(*place)}, nil
	}, sdk.Filters())
}

// memory is the store of one process. No other one drops a collection of which it has changes.
type memory struct {
	sdk.Store
	place *place
}

// Search implements sdk.Store. It holds the engine to what sdk.Query promises.
func (m *memory) Search(ctx context.Context, name string, search sdk.Search, queries []sdk.Query) ([]sdk.Hits, error) {
	for _, q := range queries {
		if search.Mode == sdk.ModeLexical && q.Vector != nil {
			return nil, sdk.Invalid(errors.New("a query of a lexical search has a vector"))
		}
	}
	return m.Store.Search(ctx, name, search, queries)
}

func (m *memory) Put(ctx context.Context, name string, entries []sdk.Entry) error {
	m.place.writers.Store(name, m)
	return m.Store.Put(ctx, name, entries)
}

func (m *memory) Commit(ctx context.Context, name string, note []byte) error {
	defer m.place.writers.CompareAndDelete(name, m)
	return m.Store.Commit(ctx, name, note)
}

func (m *memory) Drop(ctx context.Context, name string) error {
	if by, ok := m.place.writers.Load(name); ok && by != m {
		return sdk.Transient(errors.New("another process writes it"), time.Millisecond)
	}
	return m.Store.Drop(ctx, name)
}

// Close implements io.Closer.
func (m *memory) Close() error {
	m.place.writers.Range(func(name, _ any) bool {
		m.place.writers.CompareAndDelete(name, m)
		return true
	})
	return nil
}

// place keeps what outlives a process.
type place struct {
	mu       sync.Mutex
	contents map[string][]byte
	writers  sync.Map // by collection: the store that has put what it has not committed
}

func (p *place) Load(_ context.Context, name string) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if content, ok := p.contents[name]; ok {
		return content, nil
	}
	return nil, fs.ErrNotExist
}

func (p *place) Save(_ context.Context, name string, content []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.contents[name] = content
	return nil
}

func (p *place) Remove(_ context.Context, name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.contents, name)
	return nil
}

func (p *place) Names(context.Context) ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.contents)), nil
}
