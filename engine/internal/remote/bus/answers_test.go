package bus

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/knowledge/cache"
	"github.com/racflow/racflow/engine/internal/remote/natstest"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// folder is the response cache of a machine.
func folder(t *testing.T, dir string) *cache.Cache {
	t.Helper()
	c := must.Get(cache.Open(dir, slog.New(slog.DiscardHandler)))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func machine(t *testing.T) *cache.Cache { return folder(t, t.TempDir()) }

func key(n int) sdk.Key { return sdk.KeyOf(strconv.Itoa(n)) }

// gets checks what a worker finds under a key.
func gets(t *testing.T, c *AnswersCache, k sdk.Key, fresh bool, want string) {
	t.Helper()
	values, err := c.GetAll(t.Context(), []sdk.Key{k}, fresh)
	if err != nil || len(values) != 1 || string(values[0]) != want || (values[0] == nil) != (want == "") {
		t.Errorf("it found %q, %v, want %q", values, err, want)
	}
}

// has checks what a folder has.
func has(t *testing.T, c *cache.Cache, k sdk.Key, want string) {
	t.Helper()
	if got, ok := c.Get(k); ok != (want != "") || string(got) != want {
		t.Errorf("the folder has %q, want %q", got, want)
	}
}

func keeps(t *testing.T, keep func(sdk.Key, string, []byte) error, k sdk.Key, value string) {
	t.Helper()
	must.Do(t, keep(k, "sample.openai", []byte(value)))
}

// serve begins the caller's side.
func serve(t *testing.T, r *Run, local *cache.Cache) *AnswersServer {
	t.Helper()
	s := must.Get(ServeAnswers(t.Context(), r, local, slog.New(slog.DiscardHandler)))(t)
	t.Cleanup(func() { _ = s.Close(context.Background(), false) })
	return s
}

// Where an answer is: the folder, the bucket, the caller's folder, in this order; in a run that asks again, the
// bucket alone.
func TestWhere(t *testing.T) {
	conn := connect(t, natstest.Start(t, 1).URL(), "x")
	runs := 0
	for name, c := range map[string]struct {
		local, bucket, caller string
		want, fresh           string
	}{
		"nowhere":            {},
		"here":               {local: "1", want: "1"},
		"another worker":     {bucket: "2", want: "2", fresh: "2"},
		"an earlier run":     {caller: "3", want: "3"},
		"here first":         {local: "1", caller: "3", want: "1"},
		"the run is next":    {bucket: "2", caller: "3", want: "2", fresh: "2"},
		"of this run, fresh": {local: "1", bucket: "2", caller: "3", want: "1", fresh: "2"},
	} {
		t.Run(name, func(t *testing.T) {
			for fresh, want := range map[bool]string{false: c.want, true: c.fresh} {
				runs++
				r, local, callers := create(t, conn, Config{ID: fmt.Sprint("w", runs)}), machine(t), machine(t)
				if c.local != "" {
					keeps(t, local.Put, key(1), c.local)
				}
				if c.caller != "" {
					keeps(t, callers.Put, key(1), c.caller)
				}
				var asked atomic.Int32
				server := &AnswersServer{local: callers}
				must.Get(r.Serve(cacheSubject, func(data []byte) []byte {
					asked.Add(1)
					return server.reply(data)
				}))(t)
				if c.bucket != "" {
					keeps(t, NewAnswersCache(t.Context(), machine(t), r).Add, key(1), c.bucket)
				}
				gets(t, NewAnswersCache(t.Context(), local, r), key(1), fresh, want)
				if want != "" {
					has(t, local, key(1), want) // from now on it is here
				}
				if n := asked.Load(); n > 1 || fresh && n > 0 {
					t.Errorf("the caller was asked %d times", n)
				}
			}
		})
	}
}

// Two workers ask the same at a time: what came first is what all have. When its worker dies before the
// answer was counted, nobody asks again.
func TestFirstStands(t *testing.T) {
	_, r := single(t)
	first, second := machine(t), machine(t)
	a, b := NewAnswersCache(t.Context(), first, r), NewAnswersCache(t.Context(), second, r)
	gets(t, a, key(1), false, "")
	gets(t, b, key(1), false, "") // both ask the service
	keeps(t, a.Add, key(1), "of a")
	keeps(t, b.Add, key(1), "of b")
	has(t, first, key(1), "of a")
	has(t, second, key(1), "of a")
	gets(t, b, key(1), false, "of a")
	gets(t, b, key(1), true, "of a")
	gets(t, NewAnswersCache(t.Context(), machine(t), r), key(1), false, "of a") // who takes the batch of a
	keeps(t, b.Put, key(1), "of b, again")
	has(t, second, key(1), "of a") // of this run the first stands, however it is kept
}

// A call's questions to the caller make one message, and answers of all sizes come.
func TestSizes(t *testing.T) {
	_, r := single(t)
	callers := machine(t)
	sizes := []int{2 << 20, 0, 512 << 10, 512 << 10, 512 << 10, 1, sdk.MaxCached}
	keys := make([]sdk.Key, len(sizes))
	for i, size := range sizes {
		keys[i] = key(i)
		keeps(t, callers.Put, keys[i], string(bytes.Repeat([]byte{byte(i)}, size)))
	}
	serve(t, r, callers)
	worker := NewAnswersCache(t.Context(), machine(t), r)
	worker.patience = patience
	for i, v := range must.Get(worker.GetAll(t.Context(), keys, false))(t) {
		if v == nil || len(v) != sizes[i] || bytes.Count(v, []byte{byte(i)}) != sizes[i] {
			t.Errorf("value %d has %d bytes, want %d", i, len(v), sizes[i])
		}
	}
	if err := worker.Add(key(1), "x", make([]byte, sdk.MaxCached+1)); sdk.CodeOf(err) != sdk.CodeInvalid {
		t.Errorf("an answer that is too large: %v", err)
	}
}

// What workers keep comes into the caller's folder, also where the caller died meanwhile.
func TestBring(t *testing.T) {
	ctx, r := single(t)
	dir := t.TempDir()
	local := folder(t, dir)
	keeps(t, local.Put, key(1), "known")
	keeps(t, local.Put, key(2), "older")
	worker := NewAnswersCache(ctx, machine(t), r)
	keeps(t, worker.Add, key(1), "known")
	keeps(t, worker.Add, key(2), "newer")
	must.Get(r.KeepAnswer(ctx, "no-key", []byte("x")))(t) // nobody can read these
	must.Get(r.KeepAnswer(ctx, name(key(9)), []byte("x")))(t)
	s := serve(t, r, local)
	keeps(t, worker.Add, key(3), "meanwhile")
	must.Do(t, s.Close(ctx, true))
	local = folder(t, dir)
	has(t, local, key(1), "known")
	has(t, local, key(2), "newer")
	has(t, local, key(3), "meanwhile")
	has(t, local, key(9), "")
	must.Do(t, local.Close())

	keeps(t, worker.Add, key(4), "while the caller was away")
	local = folder(t, dir)
	must.Do(t, serve(t, r, local).Close(ctx, true))
	local = folder(t, dir)
	has(t, local, key(4), "while the caller was away")
	stats, err := cache.ReadStats(dir)
	if err != nil || stats.Entries != 4 || len(stats.About) != 1 || stats.About[0].About != "sample.openai" {
		t.Errorf("the folder has %+v, %v", stats, err)
	}
}

// A caller that does not reply is not asked by every look.
func TestSilentCaller(t *testing.T) {
	ctx, r := single(t)
	var asked atomic.Int32
	must.Get(r.Serve(cacheSubject, func([]byte) []byte {
		asked.Add(1)
		<-ctx.Done()
		return nil
	}))(t)
	worker := NewAnswersCache(ctx, machine(t), r)
	worker.patience = 50 * time.Millisecond
	gets(t, worker, key(1), false, "")
	gets(t, worker, key(2), false, "")
	if n := asked.Load(); n > 1 {
		t.Errorf("it was asked %d times", n)
	}
}

// What is kept while no server is there is in the folder, and waits for the servers.
func TestServersAway(t *testing.T) {
	s := natstest.Start(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	waiting := make(chan error, 16)
	open := func(name string, waits func(error)) *Run {
		c := must.Get(Connect(ctx, Options{Servers: s.URL(), Name: name, Waiting: waits}))(t)
		t.Cleanup(c.Close)
		if name == "caller" {
			must.Get(c.Create(ctx, Config{ID: "a1"}))(t)
		}
		return must.Get(c.Open(ctx, "a1"))(t)
	}
	dir := t.TempDir()
	callers, seconds := folder(t, dir), machine(t)
	caller := open("caller", nil)
	a, b := NewAnswersCache(ctx, machine(t), open("a", nil)), NewAnswersCache(ctx, seconds, open("b", func(why error) { waiting <- why }))
	server := must.Get(ServeAnswers(ctx, caller, callers, slog.New(slog.DiscardHandler)))(t)
	s.Stop(0)
	kept := make(chan error, 1)
	go func() { kept <- b.Add(key(4), "sample.openai", []byte("while no server is there")) }()
	for {
		if _, ok := seconds.Get(key(4)); ok { // it survives b already
			break
		}
		if ctx.Err() != nil {
			t.Fatal("the answer is not in the folder")
		}
	}
	for why := range waiting {
		if why != nil {
			break
		}
	}
	select {
	case err := <-kept:
		t.Fatalf("it is kept where no server is: %v", err)
	default:
	}
	s.Start(0)
	if err := <-kept; err != nil {
		t.Fatal(err)
	}
	gets(t, a, key(4), false, "while no server is there")
	must.Do(t, server.Close(ctx, true))
	callers = folder(t, dir)
	has(t, callers, key(4), "while no server is there")
}
