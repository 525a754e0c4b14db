package worker

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/cluster/bus"
	"github.com/racflow/racflow/engine/cluster/definition"
	"github.com/racflow/racflow/engine/cluster/natstest"
	"github.com/racflow/racflow/engine/cluster/packet"
	"github.com/racflow/racflow/engine/run"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// patience bounds what a test waits for.
const patience = time.Minute

func connect(t *testing.T, s *natstest.Servers, name string) *bus.Conn {
	t.Helper()
	c := must.Get(bus.Connect(t.Context(), bus.Options{Servers: s.URL(), Name: name}))(t)
	t.Cleanup(c.Close)
	return c
}

// begin makes a run, as a caller does.
func begin(t *testing.T, c *bus.Conn, d definition.Definition, claim time.Duration) *bus.Run {
	t.Helper()
	d.Format = definition.Format
	text := must.Get(d.Encode())(t)
	return must.Get(c.Create(t.Context(), bus.Config{ID: d.Run, Definition: text, Claim: claim}))(t)
}

// publish sends batches of one item each.
func publish(t *testing.T, r *bus.Run, from, to int) {
	t.Helper()
	for seq := from; seq <= to; seq++ {
		data := must.Get(packet.EncodeOrder(run.Order{Rows: []source.Row{{Line: seq * 100, Text: "t"}}}))(t)
		must.Do(t, r.Publish(t.Context(), bus.Position{Part: 1, Seq: seq}, data))
	}
}

// results reads n results, which have to be of different positions.
func results(t *testing.T, r *bus.Run, n int) map[bus.Position]bus.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	all := map[bus.Position]bus.Result{}
	for result, err := range r.Results(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := all[result.Position]; twice {
			t.Errorf("batch %s has two results", result.Position)
		}
		if all[result.Position] = result; len(all) == n {
			return all
		}
	}
	t.Fatalf("%d of %d results", len(all), n)
	return nil
}

// state waits until the state of a worker is as it should be; nil: it is forgotten.
func state(t *testing.T, r *bus.Run, name string, is func(*definition.Worker) bool) {
	t.Helper()
	var last *definition.Worker
	for start := time.Now(); time.Since(start) < patience; time.Sleep(10 * time.Millisecond) {
		value, _, err := r.Get(t.Context(), definition.WorkerPrefix+name)
		if err != nil {
			t.Fatal(err)
		}
		if last = nil; value != nil {
			last = &definition.Worker{}
			must.Do(t, json.Unmarshal(value, last))
		}
		if is(last) {
			return
		}
	}
	t.Fatalf("%s: %+v", name, last)
}

// faked starts a worker at real servers whose stages are fakes. end has it drain, and waits for that.
func faked(t *testing.T, c *bus.Conn, f *fakeRoom) (end func()) {
	t.Helper()
	f.place, f.size = &place{t: t}, 2
	o := Options{Engine: engine.Options{Log: slog.New(slog.DiscardHandler)}}
	w := o.worker(c, func(context.Context, room, *definition.Definition) (joined, error) { return &fake{f}, nil })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.until(ctx, f.again) }()
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	return end
}

// Two workers share a run; one is told to end, and the other does the rest. When the run is over, both
// have left, and nobody speaks of them any more.
func TestServers(t *testing.T) {
	s := natstest.Start(t, 1)
	caller := connect(t, s, "caller")
	r := begin(t, caller, definition.Definition{Run: "a1", Version: engine.Version()}, 0)
	publish(t, r, 1, 20)
	first, second := &fakeRoom{id: "first"}, &fakeRoom{id: "second"}
	endFirst := faked(t, connect(t, s, "first"), first)
	state(t, r, "first", func(w *definition.Worker) bool { return w != nil && w.State == definition.Working && w.Batches == 20 })
	results(t, r, 20)
	endFirst()
	state(t, r, "first", func(w *definition.Worker) bool { return w == nil })
	publish(t, r, 21, 40)
	faked(t, connect(t, s, "second"), second)
	for at, result := range results(t, r, 40) {
		if want := map[bool]string{true: "first", false: "second"}[at.Seq <= 20]; result.Worker != want {
			t.Errorf("batch %s was answered by %s", at, result.Worker)
		}
	}
	must.Get(r.Put(t.Context(), definition.EndKey, []byte("{}")))(t)
	state(t, r, "second", func(w *definition.Worker) bool { return w == nil })
	if got := second.noted("close"); got != "close second" {
		t.Errorf("its pipeline stays open: %q", got)
	}
	if got := first.noted("return") + second.noted("return"); got != "" {
		t.Errorf("given back: %s", got)
	}
}

// A run that is removed is left.
func TestRemoved(t *testing.T) {
	s := natstest.Start(t, 1)
	r := begin(t, connect(t, s, "caller"), definition.Definition{Run: "a1", Version: engine.Version()}, 0)
	f := &fakeRoom{id: "a1"}
	end := faked(t, connect(t, s, "worker"), f)
	state(t, r, "worker", func(w *definition.Worker) bool { return w != nil && w.State == definition.Working })
	must.Do(t, r.Remove(t.Context()))
	for start := time.Now(); f.noted("close") == ""; time.Sleep(10 * time.Millisecond) {
		if time.Since(start) > patience {
			t.Fatal("it does not notice that the run is gone")
		}
	}
	end()
}

// A worker hears that a run is over, and does not only look from time to time.
func TestHearsTheEnd(t *testing.T) {
	s := natstest.Start(t, 1)
	r := begin(t, connect(t, s, "caller"), definition.Definition{Run: "r1"}, 0)
	there := must.Get(connect(t, s, "worker").Open(t.Context(), "r1"))(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	over := make(chan error)
	go func() { over <- (&natsRoom{Run: there, key: "worker.1", look: time.Hour}).Over(ctx) }()
	if err := r.Tell(definition.EndKey, nil); err != nil { // whoever listens looks, and finds that it is not
		t.Fatal(err)
	}
	must.Get(r.Put(t.Context(), definition.EndKey, []byte(`{}`)))(t)
	must.Do(t, r.Tell(definition.EndKey, nil))
	if err := <-over; err != nil {
		t.Fatal(err)
	}
}

// A run whose streams the servers do not know for now, though it is in the index, is not over: a worker comes back to it.
func TestStreamsAreAway(t *testing.T) {
	s := natstest.Start(t, 1)
	r := begin(t, connect(t, s, "caller"), definition.Definition{Run: "a1", Version: engine.Version()}, 0)
	js := s.JetStream(t)
	again := map[string]func(){} // by stream: how it is made again
	lose := func(names ...string) {
		for _, name := range names {
			stream := must.Get(js.Stream(t.Context(), name))(t)
			var queue *jetstream.ConsumerInfo
			for queue = range stream.ListConsumers(t.Context()).Info() {
			}
			again[name] = func() {
				must.Get(js.CreateStream(t.Context(), stream.CachedInfo().Config))(t)
				if queue != nil {
					must.Get(js.CreateConsumer(t.Context(), name, queue.Config))(t)
				}
			}
			must.Do(t, js.DeleteStream(t.Context(), name))
		}
	}
	conn := connect(t, s, "worker")
	at := natsServers{conn}
	here := must.Get(at.Room(t.Context(), "a1"))(t)
	f := &fakeRoom{id: "a1", again: make(chan struct{})}
	end := faked(t, conn, f)
	publish(t, r, 1, 1)
	results(t, r, 1)
	woken := make(chan struct{})
	go func() {
		for {
			select {
			case f.again <- struct{}{}: // as SIGHUP: it need not wait for its next look
				time.Sleep(10 * time.Millisecond)
			case <-woken:
				return
			}
		}
	}()
	lose("racflow_a1_items", "KV_racflow_a1")
	if over, err := here.(*natsRoom).over(t.Context()); over || !errors.Is(err, bus.ErrNoRun) {
		t.Errorf("a run without streams, in the index: over %v, %v", over, err)
	}
	if there, err := at.Room(t.Context(), "a1"); there != nil || !errors.Is(err, bus.ErrNoRun) {
		t.Errorf("a run without streams, in the index: room %v, %v", there, err)
	}
	// It leaves as what it waits on ends, comes back, and finds nothing.
	for start := time.Now(); strings.Count(f.noted("close"), "close") < 2; time.Sleep(10 * time.Millisecond) {
		if time.Since(start) > patience {
			t.Fatalf("it does not come back: %s", f.noted("close"))
		}
	}
	for _, remake := range again {
		remake()
	}
	publish(t, r, 2, 2)
	results(t, r, 2)
	close(woken)
	end()
	must.Do(t, r.Remove(t.Context()))
	if over, err := here.(*natsRoom).over(t.Context()); !over || err != nil {
		t.Errorf("a run that was removed: over %v, %v", over, err)
	}
	if there, err := at.Room(t.Context(), "a1"); there != nil || err != nil {
		t.Errorf("a run that was removed: room %v, %v", there, err)
	}
}

// Batches of an earlier part are dropped when the caller says that another has begun, and no worker can
// say that in its place; also when a batch of a later part arrives.
func TestLaterPart(t *testing.T) {
	s := natstest.Start(t, 1)
	r := begin(t, connect(t, s, "caller"), definition.Definition{Run: "r1"}, 0)
	at := natsServers{connect(t, s, "worker")}
	there := must.Get(at.Open(t.Context(), "r1"))(t)
	n := &natsRoom{Run: there, at: at, key: "worker.1", look: time.Hour}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	publish(t, r, 1, 1)
	b := must.Get(n.Take(ctx))(t)
	n.follow(ctx) // nobody has said anything
	select {
	case <-b.Past:
		t.Fatal("a batch of the only part is past")
	default:
	}
	over := make(chan error, 1)
	go func() { over <- n.Over(ctx) }()
	must.Get(r.Put(ctx, definition.CallerKey, []byte(`{"part":2}`)))(t)
	for told := false; !told; { // until it listens
		must.Do(t, r.Tell(definition.CallerKey, nil))
		select {
		case <-b.Past:
			told = true
		case <-ctx.Done():
			t.Fatal("nobody hears of the second part")
		case <-time.After(10 * time.Millisecond):
		}
	}
	cancel()
	<-over
	second := n.on.begin(2)
	n.on.begin(3)
	<-second
	<-n.on.begin(2)
}
