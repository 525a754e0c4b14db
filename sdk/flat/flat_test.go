package flat_test

import (
	"context"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/flat"
	"github.com/racflow/racflow/sdk/sdktest"
)

// memory is a place that lasts as long as the test.
type memory struct {
	mu       sync.Mutex
	contents map[string][]byte
}

func (m *memory) Load(_ context.Context, name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if content, ok := m.contents[name]; ok {
		return content, nil
	}
	return nil, &fs.PathError{Op: "load", Path: name, Err: fs.ErrNotExist}
}

func (m *memory) Save(_ context.Context, name string, content []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.contents[name] = content
	return nil
}

func (m *memory) Remove(_ context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.contents, name)
	return nil
}

func (m *memory) Names(context.Context) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append(slices.Collect(maps.Keys(m.contents)), "of somebody else"), nil
}

func newMemory() *memory { return &memory{contents: map[string][]byte{}} }

func TestConformance(t *testing.T) {
	m := newMemory()
	stage := sdk.StoreStage("flat", "Keeps collections in memory.",
		func(context.Context, sdk.Setup, struct{}) (sdk.Store, error) { return flat.New(m), nil }, sdk.Filters())
	sdktest.Stage(t, stage, `{}`)
}

// TestOtherProcess refuses to overwrite the commit of another process.
func TestOtherProcess(t *testing.T) {
	m, ctx, schema := newMemory(), t.Context(), sdk.Schema{Dimension: 1}
	one, two := flat.New(m), flat.New(m)
	for _, s := range []sdk.Store{one, two} {
		if _, err := s.Open(ctx, "c", schema); err != nil {
			t.Fatal(err)
		}
	}
	put := func(s sdk.Store, id string) error {
		if err := s.Put(ctx, "c", []sdk.Entry{{ID: id, Vector: []float32{1}}}); err != nil {
			t.Fatal(err)
		}
		return s.Commit(ctx, "c", nil)
	}
	if err := put(one, "a"); err != nil {
		t.Fatal(err)
	}
	if err := put(two, "b"); sdk.CodeOf(err) != sdk.CodeTransient {
		t.Fatalf("a commit over another process's: %v, want a transient error", err)
	}
	if state, err := two.Open(ctx, "c", schema); err != nil || state.Entries != 1 {
		t.Fatalf("opened again: %+v, %v", state, err)
	}
	if err := put(two, "b"); err != nil {
		t.Error(err)
	}
}

// TestDamaged opens no collection with a missing part, and lists the others.
func TestDamaged(t *testing.T) {
	m, ctx, schema := newMemory(), t.Context(), sdk.Schema{Dimension: 1}
	s := flat.New(m)
	for _, name := range []string{"good", "bad"} {
		if _, err := s.Open(ctx, name, schema); err != nil {
			t.Fatal(err)
		}
		if err := s.Commit(ctx, name, nil); err != nil {
			t.Fatal(err)
		}
		if name == "good" {
			continue
		}
		for file, content := range m.contents {
			if list, err := flat.New(m).List(ctx); err != nil || len(list) != 2 {
				t.Fatalf("list: %v, %v", list, err)
			}
			m.contents[file] = content[:len(content)/2]
			if _, err := s.Open(ctx, "bad", schema); err == nil {
				m.contents[file] = content // the content belonged to the other collection
				continue
			}
			break
		}
	}
	list, err := s.List(ctx)
	if err != nil || len(list) != 1 || list[0].Name != "good" {
		t.Errorf("list: %v, %v; want the good one", list, err)
	}
}
