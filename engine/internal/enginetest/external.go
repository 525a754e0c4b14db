package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/flat"
)

// External is a collection that another program makes, which a test changes as its owner would.
type External struct {
	mu      sync.Mutex
	found   sdk.Attached
	now     sdk.Store // with the one collection, open
	gone    error
	attach  int
	scanned int // entries

	Searched atomic.Pointer[sdk.Search] // the latest search; nil: there was none
}

// NewExternal makes a collection called "theirs", with labels where an entry has one.
func NewExternal(id string, lexical bool, entries ...sdk.Entry) *External {
	t := &External{found: sdk.Attached{Lexical: lexical, Fields: []sdk.AttachedField{{Part: "text", Field: "content", Why: "the only text"}}, Notes: []string{"A note of the store."}}}
	t.Change(id, entries...)
	return t
}

// Change replaces the collection, or its entries where the ID stays.
func (t *External) Change(id string, entries ...sdk.Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.found.Labels = false
	for _, e := range entries {
		t.found.Dimension, t.found.Labels = len(e.Vector), t.found.Labels || e.Label != ""
	}
	t.found.Name, t.found.ID, t.found.Entries, t.gone = "theirs", id, len(entries), nil
	t.fill(entries)
}

// fill makes a store of entries.
func (t *External) fill(entries []sdk.Entry) {
	schema := sdk.Schema{Dimension: t.found.Dimension}
	if t.found.Lexical {
		schema.Analyzer = "standard"
	}
	ctx, now := context.Background(), flat.New(&place{contents: map[string][]byte{}})
	_, err := now.Open(ctx, t.found.Name, schema)
	if err = errors.Join(err, now.Put(ctx, t.found.Name, entries), now.Commit(ctx, t.found.Name, nil)); err != nil {
		panic(err) // a test has given entries that no store takes
	}
	t.now = now
}

// Count has the server count so many entries, whatever there are.
func (t *External) Count(entries int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.found.Entries = entries
}

// Words says whether the collection can be searched by words from now on.
func (t *External) Words(can bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.found.Lexical = can
}

// Empty removes all entries.
func (t *External) Empty() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.found.Entries = 0
	t.fill(nil)
}

// Drop makes every call fail from now on.
func (t *External) Drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gone = sdk.Invalid(errors.New("collection theirs was dropped: attach another one"))
}

// Calls returns how often the collection was attached, and how many entries scans have read.
func (t *External) Calls() (attached, scanned int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.attach, t.scanned
}

// Stage is a store that serves the collection where its argument collection is given.
func (t *External) Stage() sdk.Stage {
	return attaches("theirs", func(string) func() (*External, error) {
		return func() (*External, error) { return t, nil }
	})
}

// Filed is what a file of somebody else holds that TheirsFile serves.
type Filed struct {
	ID      string
	Lexical bool
	Entries []sdk.Entry
}

// TheirsFile is a store that serves a file, the JSON of a Filed, as a collection that another program makes: for
// processes. It is read for each call; where it is not there, the collection was dropped.
func TheirsFile() sdk.Stage {
	return attaches("theirs_file", func(path string) func() (*External, error) {
		return func() (*External, error) {
			var now Filed
			raw, err := os.ReadFile(path)
			if err == nil {
				err = json.Unmarshal(raw, &now)
			}
			if err != nil {
				return nil, sdk.Invalid(errors.New("collection theirs was dropped: attach another one"))
			}
			t := NewExternal(now.ID, now.Lexical, now.Entries...)
			t.attach = 1 // a process attaches it before all else
			return t, nil
		}
	})
}

// attaches is a store that serves what open returns for its argument collection, as it is for each call.
func attaches(name string, open func(collection string) func() (*External, error)) sdk.Stage {
	type config struct {
		Collection string `config:"collection" doc:"A collection that another program makes."`
	}
	return sdk.StoreStage(name, "A collection of another program.", func(_ context.Context, _ sdk.Setup, c config) (sdk.Store, error) {
		return &attacher{flat.New(&place{contents: map[string][]byte{}}), open(c.Collection)}, nil
	}, sdk.Filters(), sdk.Attaches("collection"))
}

// attacher is a process that serves the collection, and as a store of its own any other.
type attacher struct {
	sdk.Store
	theirs func() (*External, error)
}

func (a *attacher) Attach(context.Context) (sdk.Attached, error) {
	t, err := a.theirs()
	if err != nil {
		return sdk.Attached{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.attach++
	found := t.found
	found.Fields, found.Notes = slices.Clone(t.found.Fields), slices.Clone(t.found.Notes)
	return found, t.gone
}

// read returns the collection as it is now.
func (a *attacher) read(name string) (*External, sdk.Store, error) {
	t, err := a.theirs()
	if err != nil {
		return nil, nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.attach == 0 || name != t.found.Name {
		return nil, nil, sdk.Invalid(errors.New("nothing is attached"))
	}
	return t, t.now, t.gone
}

func (a *attacher) Search(ctx context.Context, name string, s sdk.Search, queries []sdk.Query) ([]sdk.Hits, error) {
	t, now, err := a.read(name)
	if err != nil {
		return nil, err
	}
	t.Searched.Store(&s)
	return now.Search(ctx, name, s, queries)
}

func (a *attacher) Get(ctx context.Context, name string, ids []string) ([]sdk.Entry, error) {
	_, now, err := a.read(name)
	if err != nil {
		return nil, err
	}
	return now.Get(ctx, name, ids)
}

func (a *attacher) Scan(ctx context.Context, name string, s sdk.Scan) (sdk.Page, error) {
	t, now, err := a.read(name)
	if err != nil {
		return sdk.Page{}, err
	}
	page, err := now.Scan(ctx, name, s)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.scanned += len(page.Entries)
	return page, err
}

var errReadOnly = sdk.Invalid(errors.New("the collection is read only"))

func (a *attacher) Put(context.Context, string, []sdk.Entry) error { return errReadOnly }

func (a *attacher) Delete(context.Context, string, []string) error { return errReadOnly }

func (a *attacher) Commit(context.Context, string, []byte) error { return errReadOnly }

func (a *attacher) Drop(context.Context, string) error { return errReadOnly }
