package sharing_test

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge/cache"
	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/engine/internal/remote/natstest"
	"github.com/racflow/racflow/engine/internal/remote/sharing"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// run is a run that shares a limit and answers with others.
type run struct {
	client *sharing.Client
	host   sdk.Host
}

func newRun(t *testing.T, servers, block string) run {
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	conn := must.Get(bus.Connect(t.Context(), bus.Options{Servers: servers, Name: block, Log: log}))(t)
	t.Cleanup(conn.Close)
	c := sharing.New(t.Context(), conn, bus.Caller, log)
	t.Cleanup(c.Close)
	answers := must.Get(c.Answers("team", must.Get(cache.Open(t.TempDir(), log))(t)))(t)
	g := governor.New(t.Context(), governor.Options{Cache: answers, Share: c.Limit, Log: log})
	limit := &pipeline.Limit{Name: block, Concurrency: 3, Shared: "team-key"}
	return run{c, g.Stage(governor.Stage{Name: "sample.llm", Kind: sdk.KindSample, Use: "openai", Limit: limit, Required: true})}
}

// TestLimit: two runs, which call their blocks differently, keep a limit together.
func TestLimit(t *testing.T) {
	servers := natstest.Start(t, 1).URL()
	var underWay, most, calls atomic.Int64
	var all sync.WaitGroup
	for _, block := range []string{"a", "b"} {
		r := newRun(t, servers, block)
		for range 8 {
			all.Go(func() {
				for range 5 {
					release, err := r.host.Acquire(t.Context(), sdk.Call{Endpoint: "http://service"})
					if err != nil {
						t.Error(err)
						return
					}
					calls.Add(1)
					now := underWay.Add(1)
					for high := most.Load(); now > high && !most.CompareAndSwap(high, now); high = most.Load() {
					}
					time.Sleep(5 * time.Millisecond)
					underWay.Add(-1)
					release(sdk.Result{Status: sdk.StatusOK})
				}
			})
		}
	}
	all.Wait()
	if calls.Load() != 80 || most.Load() != 3 {
		t.Errorf("%d calls, at most %d at a time; want 80 and 3", calls.Load(), most.Load())
	}
}

// TestAnswers: of two runs that look for an answer, one asks, and the other waits until it has the answer or gives up.
func TestAnswers(t *testing.T) {
	servers := natstest.Start(t, 1).URL()
	a, b := newRun(t, servers, "a"), newRun(t, servers, "b")
	one, other := sdk.KeyOf("one"), sdk.KeyOf("other")
	get := func(r run, key sdk.Key) string {
		return string(must.Get(r.host.CacheGet(t.Context(), []sdk.Key{key}))(t)[0])
	}
	if get(a, one)+get(a, other) != "" {
		t.Fatal("there are answers")
	}
	waits := map[sdk.Key]chan string{one: make(chan string, 1), other: make(chan string, 1)}
	for key, got := range waits {
		go func() { got <- get(b, key) }()
	}
	select {
	case got := <-waits[one]:
		t.Fatalf("it does not wait: %q", got)
	case <-time.After(300 * time.Millisecond):
	}
	must.Do(t, a.host.CachePut(t.Context(), one, []byte("1")))
	if got := <-waits[one]; got != "1" {
		t.Errorf("it has %q", got)
	}
	a.client.Close()
	if got := <-waits[other]; got != "" {
		t.Errorf("nobody asked, and it has %q", got)
	}
	must.Do(t, b.host.CachePut(t.Context(), one, []byte("2")))
	if got := get(newRun(t, servers, "c"), one); got != "1" {
		t.Errorf("the first answer is gone: %q", got)
	}
}
