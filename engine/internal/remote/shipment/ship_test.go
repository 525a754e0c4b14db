package shipment

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/engine/internal/remote/natstest"
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
	shipped := must.Get(PutShipped(t.Context(), caller, files))(t)
	must.Do(t, get(t.Context(), worker, shipped, state))
	for i, s := range shipped {
		digest, err := program.HashFile(filepath.Join(state, filepath.FromSlash(s.Name)))
		if want, _ := program.HashFile(files[i].Path); err != nil || digest != want || !s.Moved {
			t.Errorf("%s: %v, sent: %v", s.Name, err, s.Moved)
		}
	}
	again, err := PutShipped(t.Context(), caller, files)
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
	again, err = PutShipped(t.Context(), caller, files) // as a caller does once its run is there
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
	arrived := &counting{ObjectStore: first, after: 4, do: kill}
	if _, err := PutShipped(ctx, arrived, files); !errors.Is(err, context.Canceled) {
		t.Fatalf("it was not killed: %v", err)
	}
	first.Close()
	second := connect(t, servers)
	there, err := second.Files(t.Context())
	there = slices.DeleteFunc(there, func(f bus.File) bool { return !must.Get(second.HasFile(t.Context(), f.Digest))(t) }) // not whole
	if err != nil || len(there) < 4 || len(there) == len(files) {
		t.Fatalf("%d files are there, %v", len(there), err)
	}
	shipped := must.Get(PutShipped(t.Context(), second, files))(t)
	for _, s := range shipped {
		if s.Moved && slices.ContainsFunc(there, func(f bus.File) bool { return f.Digest == s.Digest }) {
			t.Errorf("%s was there and was sent again", s.Name)
		}
	}
}

// counting calls do when so many files have arrived.
type counting struct {
	ObjectStore
	after int32
	do    func()
	seen  atomic.Int32
}

func (c *counting) PutFile(ctx context.Context, digest string, r io.Reader) error {
	err := c.ObjectStore.PutFile(ctx, digest, r)
	if err == nil && c.seen.Add(1) == c.after {
		c.do()
	}
	return err
}

// objects are the files of servers in memory.
type objects struct {
	mu      sync.Mutex
	content map[string][]byte
	puts    map[string]int
	gets    map[string]int
	getting func(digest string, b []byte) []byte // what is sent in place of an object; may be nil
}

func newObjects() *objects {
	return &objects{content: map[string][]byte{}, puts: map[string]int{}, gets: map[string]int{}}
}

func (o *objects) HasFile(_ context.Context, digest string) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, ok := o.content[digest]
	return ok, nil
}

func (o *objects) PutFile(ctx context.Context, digest string, r io.Reader) error {
	b, err := io.ReadAll(r)
	if err = errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	if digest != sum(string(b)) {
		return errors.New("another content")
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.content[digest] = b
	o.puts[digest]++
	return nil
}

func (o *objects) GetFile(_ context.Context, digest string, w io.Writer) error {
	o.mu.Lock()
	b, ok := o.content[digest]
	o.gets[digest]++
	o.mu.Unlock()
	if !ok {
		return errors.New("there is no such object")
	}
	if o.getting != nil {
		b = o.getting(digest, b)
	}
	_, err := w.Write(b)
	return err
}

func sum(content string) string {
	h := sha256.Sum256([]byte(content))
	return hex.EncodeToString(h[:])
}

// files writes files and returns them as a shipment.
func files(t *testing.T, content map[string]string) (all []engine.ShipFile) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range content {
		path := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		all = append(all, engine.ShipFile{Name: name, Path: path, Fixed: strings.HasSuffix(name, ".segment")})
	}
	return all
}

var some = map[string]string{
	"knowledge/k/c/log": "a log", "knowledge/k/c/1.segment": "one", "knowledge/k/c/2.segment": "two", "knowledge/k/c-labels/log": "labels",
	"fitted/c/x/same": "one", "empty": "",
}

func sent(t *testing.T, o *objects, content map[string]string) []Shipped {
	t.Helper()
	return must.Get(PutShipped(t.Context(), o, files(t, content)))(t)
}

// get keeps files in a folder below the state folder.
func get(ctx context.Context, conn ObjectStore, files []Shipped, state string) error {
	return KeptFiles{filepath.Join(state, "kept")}.Get(ctx, conn, files, state)
}

// check compares a state folder with what was shipped to it.
func check(t *testing.T, state string, want map[string]string) {
	t.Helper()
	for name, text := range want {
		path := filepath.Join(state, filepath.FromSlash(name))
		got, err := os.ReadFile(path)
		if err != nil || string(got) != text {
			t.Errorf("%s is %q, %v; want %q", name, got, err, text)
		}
		for dir := filepath.Dir(path); dir != filepath.Dir(state); dir = filepath.Dir(dir) {
			if info, err := os.Stat(dir); err != nil || dir != state && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: %v, %v", dir, info.Mode(), err)
			}
		}
	}
	left, err := filepath.Glob(filepath.Join(state, "*", "*", "*", unfinished+"*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// What one machine has, the other has afterwards; what is there already is neither sent nor loaded again.
func TestThereAndBack(t *testing.T) {
	o, state := newObjects(), t.TempDir()
	all := sent(t, o, some)
	must.Do(t, get(t.Context(), o, all, state))
	check(t, state, some)
	for digest, n := range o.puts {
		if n != 1 {
			t.Errorf("%s: sent %d times", digest, n)
		}
	}
	more := map[string]string{"knowledge/k/c/log": "a longer log", "knowledge/k/c/1.segment": "one"}
	again := sent(t, o, more)
	for _, s := range again {
		if s.Moved != (s.Name == "knowledge/k/c/log") {
			t.Errorf("%s: sent: %v", s.Name, s.Moved)
		}
	}
	must.Do(t, get(t.Context(), o, again, state))
	check(t, state, more)
	before := o.gets[sum("one")]
	must.Do(t, get(t.Context(), o, again, state))
	if o.gets[sum("one")] != before || o.gets[sum("a longer log")] != 1 {
		t.Errorf("loaded: %v", o.gets)
	}
}

// A log that a process appends to in the state folder changes nothing of what is kept; segments take no
// room twice.
func TestLinks(t *testing.T) {
	o, state := newObjects(), t.TempDir()
	all := sent(t, o, some)
	for range 2 { // at first, what two files share may be loaded for each, and the later one is kept
		must.Do(t, get(t.Context(), o, all, state))
	}
	same := func(name, content string) bool {
		a, err := os.Stat(filepath.Join(state, filepath.FromSlash(name)))
		b, err2 := os.Stat(filepath.Join(state, "kept", sum(content)))
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		return os.SameFile(a, b)
	}
	if !same("knowledge/k/c/1.segment", "one") || same("knowledge/k/c/log", "a log") || same("fitted/c/x/same", "one") {
		t.Error("what may change is linked, or what does not is copied")
	}
}

// A process that has a file open which is replaced goes on with what it has.
func TestOpenFile(t *testing.T) {
	o, state := newObjects(), t.TempDir()
	must.Do(t, get(t.Context(), o, sent(t, o, map[string]string{"log": "before"}), state))
	held := must.Get(os.Open(filepath.Join(state, "log")))(t)
	defer held.Close()
	must.Do(t, get(t.Context(), o, sent(t, o, map[string]string{"log": "after"}), state))
	if got, err := io.ReadAll(held); err != nil || string(got) != "before" {
		t.Errorf("%q, %v", got, err)
	}
	check(t, state, map[string]string{"log": "after"})
}

// What comes damaged is refused, and what was damaged on the worker's disk is loaded again. Nothing damaged gets a name.
func TestDamaged(t *testing.T) {
	o, state := newObjects(), t.TempDir()
	all := sent(t, o, map[string]string{"a": "content"})
	must.Do(t, get(t.Context(), o, all, state))
	kept := filepath.Join(state, "kept", sum("content"))
	must.Do(t, os.WriteFile(kept, []byte("CONTENT"), 0o600))
	if err := get(t.Context(), o, all, state); err != nil || o.gets[sum("content")] != 2 {
		t.Fatalf("%v, loaded %d times", err, o.gets[sum("content")])
	}
	check(t, state, map[string]string{"a": "content"})

	o.getting = func(_ string, b []byte) []byte { return bytes.ToUpper(b) }
	other := t.TempDir()
	if err := get(t.Context(), o, all, other); !errors.Is(err, errDamaged) {
		t.Errorf("always damaged: %v", err)
	}
	if left, err := os.ReadDir(filepath.Join(other, "kept")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(other, "a")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it got a name: %v", err)
	}
}

// Workers may share the folder of kept files, and fill it at the same time.
func TestTwoWorkers(t *testing.T) {
	o := newObjects()
	all := sent(t, o, some)
	kept := KeptFiles{filepath.Join(t.TempDir(), "kept")}
	var working sync.WaitGroup
	states := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	for _, state := range states {
		working.Go(func() {
			if err := kept.Get(t.Context(), o, all, state); err != nil {
				t.Error(err)
			}
		})
	}
	working.Wait()
	for _, state := range states {
		check(t, state, some)
	}
}

// Nothing leaves the state folder, whatever a definition says.
func TestHostile(t *testing.T) {
	o := newObjects()
	good := sent(t, o, map[string]string{"a": "content"})[0]
	for _, name := range []string{"", ".", "..", "../a", "/a", "b/../../a", "b/../a", "a/", "./a", "b//a"} {
		state := t.TempDir()
		bad := good
		bad.Name = name
		if err := get(t.Context(), o, []Shipped{bad}, state); err == nil {
			t.Errorf("the name %q was taken", name)
		}
	}
	for _, digest := range []string{"", "../a", strings.Repeat("A", 64), strings.Repeat("a", 63), strings.Repeat("a", 63) + "/"} {
		bad := good
		bad.Digest = digest
		if err := get(t.Context(), o, []Shipped{bad}, t.TempDir()); err == nil || o.gets[digest] > 0 {
			t.Errorf("the digest %q was taken", digest)
		}
	}
}

// What nobody has asked for goes; a state folder keeps what it has.
func TestTrim(t *testing.T) {
	o, state := newObjects(), t.TempDir()
	kept := KeptFiles{filepath.Join(state, "kept")}
	must.Do(t, kept.Trim(time.Now()))
	must.Do(t, get(t.Context(), o, sent(t, o, some), state))
	old := time.Now().Add(-48 * time.Hour)
	must.Do(t, os.Chtimes(filepath.Join(kept.Dir, sum("one")), old, old))
	must.Do(t, kept.Trim(time.Now().Add(-24*time.Hour)))
	check(t, state, some)
	if err := kept.whole(sum("one")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an old file is there: %v", err)
	}
	if err := kept.whole(sum("two")); err != nil {
		t.Errorf("a new file is gone: %v", err)
	}
}
