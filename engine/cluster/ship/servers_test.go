package ship

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/cluster/bus"
	"github.com/racflow/racflow/engine/cluster/natstest"
	"github.com/racflow/racflow/engine/program"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

func connect(t testing.TB, s *natstest.Servers) *bus.Conn {
	t.Helper()
	c := must.Get(bus.Connect(context.Background(), bus.Options{Servers: s.URL(), Name: "test"}))(t)
	t.Cleanup(c.Close)
	return c
}

// noise writes a file that nothing makes smaller.
func noise(t testing.TB, dir, name string, size int64) engine.ShipFile {
	t.Helper()
	path := filepath.Join(dir, name)
	f, err := os.Create(path)
	if err == nil {
		_, err = io.CopyN(f, rand.NewChaCha8([32]byte([]byte(fmt.Sprintf("%-32.32s", name)))), size)
	}
	if err != nil {
		t.Fatal(err)
	}
	must.Do(t, f.Close())
	return engine.ShipFile{Name: "knowledge/k/" + name, Path: path, Fixed: true}
}

// Over real servers: what is sent arrives, the second time nothing is sent or loaded, and what was removed is sent again.
func TestServers(t *testing.T) {
	servers := natstest.Start(t, 1)
	caller, worker := connect(t, servers), connect(t, servers)
	dir, state := t.TempDir(), t.TempDir()
	files := []engine.ShipFile{noise(t, dir, "a.segment", 3<<20), noise(t, dir, "b.segment", 1<<20), noise(t, dir, "log", 100), noise(t, dir, "empty", 0)}
	shipped := must.Get(Put(t.Context(), caller, files))(t)
	must.Do(t, get(t.Context(), worker, shipped, state))
	for i, s := range shipped {
		digest, err := program.HashFile(filepath.Join(state, filepath.FromSlash(s.Name)))
		if want, _ := program.HashFile(files[i].Path); err != nil || digest != want || !s.Moved {
			t.Errorf("%s: %v, sent: %v", s.Name, err, s.Moved)
		}
	}
	again, err := Put(t.Context(), caller, files)
	for _, s := range again {
		if s.Moved {
			t.Errorf("%s was sent again", s.Name)
		}
	}
	if err != nil {
		t.Fatal(err)
	}

	for _, f := range shipped[1:] { // as a caller does when its run is over
		must.Do(t, caller.RemoveFile(t.Context(), f.Digest))
	}
	if err := get(t.Context(), worker, shipped, state); err != nil { // it has them
		t.Error(err)
	}
	if err := get(t.Context(), worker, shipped, t.TempDir()); !errors.Is(err, bus.ErrNoFile) {
		t.Errorf("what was removed: %v", err)
	}
	again, err = Put(t.Context(), caller, files) // as a caller does once its run is there
	for i, s := range again {
		if s.Moved != (i > 0) {
			t.Errorf("%s was removed: %v, and sent again: %v", s.Name, i > 0, s.Moved)
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// An upload that is killed in the middle does not send again what was there when it is begun again. (What was on its way may still arrive.)
func TestKilled(t *testing.T) {
	servers := natstest.Start(t, 1)
	dir := t.TempDir()
	var files []engine.ShipFile
	for i := range 12 {
		files = append(files, noise(t, dir, fmt.Sprintf("%d.segment", i), 1<<20))
	}
	first := connect(t, servers)
	ctx, kill := context.WithCancel(t.Context())
	arrived := &counting{Objects: first, after: 4, do: kill}
	if _, err := Put(ctx, arrived, files); !errors.Is(err, context.Canceled) {
		t.Fatalf("it was not killed: %v", err)
	}
	first.Close()
	second := connect(t, servers)
	there, err := second.Files(t.Context())
	if err != nil || len(there) < 4 || len(there) == len(files) {
		t.Fatalf("%d files are there, %v", len(there), err)
	}
	shipped := must.Get(Put(t.Context(), second, files))(t)
	for _, s := range shipped {
		if s.Moved && slices.ContainsFunc(there, func(f bus.File) bool { return f.Digest == s.Digest }) {
			t.Errorf("%s was there and was sent again", s.Name)
		}
	}
}

// counting calls do when so many files have arrived.
type counting struct {
	Objects
	after int32
	do    func()
	seen  atomic.Int32
}

func (c *counting) PutFile(ctx context.Context, digest string, r io.Reader) error {
	err := c.Objects.PutFile(ctx, digest, r)
	if err == nil && c.seen.Add(1) == c.after {
		c.do()
	}
	return err
}
