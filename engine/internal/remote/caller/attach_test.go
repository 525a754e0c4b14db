package caller_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/remote/caller"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/result"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// detach leaves a run.
func (w *world) detach(o engine.Options) (*engine.Detached, error) {
	w.t.Helper()
	p := w.open(o)
	defer p.Close()
	return p.Detach(w.t.Context())
}

// attach takes the results of a run from nothing but the servers. each hears of batches as they are written.
func (w *world) attach(ctx context.Context, id, state string, each func([]outcome.Result)) (string, *engine.Outcome, *said, error) {
	w.t.Helper()
	s := &said{}
	a, err := caller.Attach(ctx, w.connect("attached"), id, caller.Options{Servers: w.servers.URL(), Say: s.say, State: w.state(state)})
	if err != nil {
		return "", nil, s, err
	}
	ws := must.Get(engine.NewWorkspace(w.t.Context(), engine.Options{Builtin: builtin, State: w.state(state)}))(w.t)
	defer ws.Close()
	var text bytes.Buffer
	write, finish := w.lines(&text)
	out, err := ws.Attach(ctx, a.Elsewhere(), func(all []outcome.Result) error {
		if each != nil {
			each(all)
		}
		return write(all)
	}, finish)
	return text.String(), out, s, err
}

// A run that was detached comes back whole, wherever there are the servers, also when the first who attaches
// leaves again, and when the caller had died before it was all there.
func TestDetach(t *testing.T) {
	w := newWorld(t, 1000)
	w.interrupted()
	c, said, o := w.second()
	left, err := w.detach(o)
	if err != nil || left.Items != 1000 {
		t.Fatalf("%+v, %v", left, err)
	}
	if !said.has("run " + c.Run() + " is left to its workers: 1000 items in ") { // what is known is in batches of its own
		t.Errorf("said %q", said.all)
	}
	w.worker(nil)
	w.worker(nil)
	ctx, cancel := context.WithCancel(t.Context())
	_, out, first, err := w.attach(ctx, c.Run(), "elsewhere", func(all []outcome.Result) {
		if all[0].Line > 300 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || out.Items == 0 || out.Items > 900 || !first.has("run "+c.Run()+" stays at ") {
		t.Fatalf("%+v, %v, said %q", out, err, first.all)
	}
	got, out, _, err := w.attach(t.Context(), c.Run(), "elsewhere", nil)
	if err != nil || got != w.want || out.Items != 1000 || out.Failed != 20 || out.Earlier < 200 || out.Run != "run-000001" {
		t.Fatalf("%+v, %v: %d bytes, want %d", out, err, len(got), len(w.want))
	}
	if !w.gone() {
		t.Error("the run is at the servers")
	}
	if _, _, _, err := w.attach(t.Context(), c.Run(), "elsewhere", nil); err == nil || !strings.Contains(err.Error(), "there is no run "+c.Run()) {
		t.Errorf("attached to what is over: %v", err)
	}
}

// Columns of the input are known before anything is written, where results are asked for first.
func TestAttachTwice(t *testing.T) {
	w := newWorld(t, 300)
	c, _ := w.caller(caller.Options{})
	must.Get(w.detach(w.options("far", c)))(t)
	w.worker(nil)
	a := must.Get(caller.Attach(t.Context(), w.connect("attached"), c.Run(), caller.Options{Servers: w.servers.URL()}))(t)
	for range 2 {
		var in result.Input
		n := 0
		if err := a.Each(func(r outcome.Result) error {
			n++
			in.See(r)
			return nil
		}); err != nil || n != 300 || len(in.Columns) != 1 || in.Columns[0].Name != "note" {
			t.Fatalf("%d results, %+v, %v", n, in, err)
		}
	}
	a.Close()
}

// Only who has the input can go on with a run that was not detached, and who goes on with one that was takes it
// from those who attached.
func TestAttachRefuses(t *testing.T) {
	w := newWorld(t, 300)
	c := w.interrupted()
	if _, _, _, err := w.attach(t.Context(), c.Run(), "elsewhere", nil); err == nil || !strings.Contains(err.Error(), "was not detached") {
		t.Fatal(err)
	}
	c, _, o := w.second()
	must.Get(w.detach(o))(t)
	ended := make(chan error, 1)
	attached := make(chan struct{})
	go func() {
		a, err := caller.Attach(t.Context(), w.connect("attached"), c.Run(), caller.Options{Servers: w.servers.URL()})
		close(attached)
		if err == nil {
			err = a.Each(func(outcome.Result) error { return nil })
		}
		ended <- err
	}()
	<-attached
	must.Do(t, w.opened(c.Run()).Remove(t.Context()))
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "or taken over by who resumed it") {
		t.Fatal(err)
	}
}

// watcher keeps what it last heard of a run.
type watcher struct {
	outcome.Observer
	pipeline string
	now      outcome.Cluster
}

func (w *watcher) Cluster(pipeline string, now outcome.Cluster) { w.pipeline, w.now = pipeline, now }

// Who watches the caller hears how far the run is; in the end, that all batches are done.
func TestObserved(t *testing.T) {
	w := newWorld(t, 100)
	w.worker(nil)
	seen := &watcher{Observer: outcome.ObserverOr(nil)}
	c, _ := w.caller(caller.Options{})
	o := w.options("far", c)
	o.Observe = seen
	if _, _, err := w.work(t.Context(), o, nil); err != nil {
		t.Fatal(err)
	}
	if seen.pipeline != "p" || seen.now.Done == 0 || seen.now.Waiting != 0 {
		t.Errorf("pipeline %q: %+v", seen.pipeline, seen.now)
	}
}
