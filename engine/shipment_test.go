package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/outcome"
)

// away is a Remote whose process has another state folder, with what is shipped alone.
type away struct {
	other
	names []string
}

func (r *away) Begin(ctx context.Context, b engine.Beginning) error {
	files, err := b.Pipeline.Shipment()
	if err != nil {
		return err
	}
	for _, f := range files {
		text, err := os.ReadFile(f.Path)
		if err != nil {
			return err
		}
		to := filepath.Join(r.o.State, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(to, text, 0o600); err != nil {
			return err
		}
		r.names = append(r.names, f.Name)
	}
	return r.other.Begin(ctx, b)
}

// below are the names of files below a folder.
func below(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			all = append(all, strings.TrimPrefix(path, dir))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return all
}

// TestShipmentOfTheirs: of a collection that somebody else makes its sample is shipped, and what stages learnt from that:
// another process neither reads it again nor learns anew, though rows were added meanwhile.
func TestShipmentOfTheirs(t *testing.T) {
	c := newTheirs(t)
	remote := &away{other: other{t: t, path: c.path, o: c.o}}
	remote.o.State = filepath.Join(t.TempDir(), "there")
	first := c.open(t) // so that there is a sample
	if _, err := first.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.change("1", fruit()[:19]...)
	p := c.open(t, func(o *engine.Options) { o.Remote = remote })
	n := 0
	if _, err := p.Work(t.Context(), func(batch []outcome.Result) error { n += len(batch); return nil }, nil); err != nil || n != 2 {
		t.Fatalf("%d results, %v", n, err)
	}
	count := func(prefix string) (n int) {
		for _, name := range remote.names {
			if strings.HasPrefix(name, prefix) {
				n++
			}
		}
		return n
	}
	if count("attached/k-") < 2 || count("fitted/attached-k-") != 1 || count("knowledge/") > 0 {
		t.Errorf("shipped: %v", remote.names)
	}
	for _, folder := range []string{"fitted", "attached"} {
		here, there := below(t, filepath.Join(c.o.State, folder)), below(t, filepath.Join(remote.o.State, folder))
		if !slices.Equal(here, there) {
			t.Errorf("%s: here %v, there %v", folder, here, there)
		}
	}
	p.Close()
	if left, err := os.ReadDir(filepath.Join(c.o.State, "shipments")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
