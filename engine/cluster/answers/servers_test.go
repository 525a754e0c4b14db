package answers

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/cluster/bus"
	"github.com/racflow/racflow/engine/cluster/natstest"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

var (
	_ Run    = (*bus.Run)(nil)
	_ Source = (*bus.Run)(nil)
)

// The same against servers: answers of earlier runs, of other workers, and what is kept while no server is there.
func TestAtServers(t *testing.T) {
	s := natstest.Start(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	waiting := make(chan error, 16)
	open := func(name string, waits func(error)) *bus.Run {
		c := must.Get(bus.Connect(ctx, bus.Options{Servers: s.URL(), Name: name, Waiting: waits}))(t)
		t.Cleanup(c.Close)
		if name == "caller" {
			must.Get(c.Create(ctx, bus.Config{ID: "a1"}))(t)
		}
		return must.Get(c.Open(ctx, "a1"))(t)
	}
	callers, firsts, seconds := machine(t), machine(t), machine(t)
	caller := open("caller", nil)
	a, b := New(ctx, firsts, open("a", nil)), New(ctx, seconds, open("b", func(why error) { waiting <- why }))

	gets(t, a, key(1), false, "") // no caller answers: there is nothing, at once
	large := string(bytes.Repeat([]byte("0123456789abcdef"), 1<<17))
	keeps(t, callers.Put, key(1), "of an earlier run")
	keeps(t, callers.Put, key(2), large)
	server := must.Get(Serve(ctx, caller, callers, slog.New(slog.DiscardHandler)))(t)
	gets(t, a, key(1), false, "of an earlier run")
	gets(t, a, key(2), false, large)
	gets(t, a, key(1), true, "")
	keeps(t, a.Add, key(3), "of a")
	keeps(t, b.Add, key(3), "of b")
	gets(t, b, key(3), true, "of a")

	s.Stop(0)
	for why := range waiting {
		if why != nil {
			break
		}
	}
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
	must.Do(t, server.Bring(ctx))
	must.Do(t, server.Close())
	has(t, callers, key(3), "of a")
	has(t, callers, key(4), "while no server is there")
}
