package enginetest

import (
	"context"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/flat"
)

// Memory is a store that compares everything with everything. Stores with the same state folder have
// the same collections.
func Memory() sdk.Stage {
	var places sync.Map // by folder
	return sdk.StoreStage("memory", "Everything in a map.", func(_ context.Context, setup sdk.Setup, _ none) (sdk.Store, error) {
		p, _ := places.LoadOrStore(setup.StateDir, &place{contents: map[string][]byte{}})
		return flat.New(p.(*place)), nil
	}, sdk.Filters())
}

// place keeps what outlives a process.
type place struct {
	mu       sync.Mutex
	contents map[string][]byte
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
