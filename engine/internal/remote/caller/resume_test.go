package caller_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/engine/internal/remote/caller"
	"github.com/racflow/racflow/engine/internal/show/terminal"

	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// deadly is a caller that dies without a word, once so many batches were answered or on the way; or that
// ends then.
type deadly struct {
	*caller.Caller
	left atomic.Int64
	kill func()
	ends bool
}

func (d *deadly) Answer(ctx context.Context, o run.Order) (run.Answers, error) {
	if d.left.Add(-1) == 0 {
		d.kill()
	}
	return d.Caller.Answer(ctx, o)
}

// End of a dead process does not happen: its work stops.
func (d *deadly) End(ctx context.Context, err error) error {
	if d.ends {
		return d.Caller.End(ctx, err)
	}
	d.Stop()
	return nil
}

// early begins a run that ends early, once 30 batches are on the way. before is called then.
func (w *world) early(ends bool, before func(*caller.Caller)) (*caller.Caller, *said) {
	w.t.Helper()
	ctx, interrupt := context.WithCancel(w.t.Context())
	defer interrupt()
	c, said := w.caller(caller.Options{})
	remote := &deadly{Caller: c, ends: ends, kill: func() {
		before(c)
		interrupt()
	}}
	remote.left.Store(30)
	o := w.options("far", c)
	o.Remote = remote
	if _, _, err := w.work(ctx, o, nil); !errors.Is(err, context.Canceled) {
		w.t.Fatal(err)
	}
	return c, said
}

// interrupted begins a run that nobody answers, and ends it early.
func (w *world) interrupted() *caller.Caller {
	w.t.Helper()
	c, said := w.early(true, func(*caller.Caller) {})
	if !said.has("run " + c.Run() + " stays at ") {
		w.t.Errorf("said %q", said.all)
	}
	return c
}

// second is another caller, and the options with which it resumes the run.
func (w *world) second() (*caller.Caller, *said, engine.Options) {
	w.t.Helper()
	c, said := w.caller(caller.Options{})
	o := w.options("far", c)
	o.Resume = engine.Newest
	return c, said, o
}

// opened is a run as others see it.
func (w *world) opened(id string) *bus.Run {
	w.t.Helper()
	return must.Get(w.connect("other").Open(w.t.Context(), id))(w.t)
}

// queued is how many batches are in the queue of a run.
func (w *world) queued(id string) int {
	w.t.Helper()
	b := must.Get(w.opened(id).Backlog(w.t.Context()))(w.t)
	return b.Waiting + b.UnderWay
}

// Who interrupts a run takes back what no worker has begun; what one has in hand is finished, and not asked
// again.
func TestInterrupted(t *testing.T) {
	w := newWorld(t, 600)
	held, release := make(chan struct{}), make(chan struct{})
	begun := 0
	stop := w.worker(func(*bus.Batch) bool {
		if begun++; begun == 1 {
			close(held)
			<-release
		}
		return true
	})
	c, said := w.early(true, func(*caller.Caller) { <-held })
	if n := w.queued(c.Run()); n > 0 || !said.has("workers finish what they have in hand, and begin nothing more") {
		t.Errorf("%d batches wait, said %q", n, said.all)
	}
	there := w.opened(c.Run())
	var state caller.SeenCaller
	if text, _, err := there.Get(t.Context(), caller.CallerKey); err != nil || json.Unmarshal(text, &state) != nil || state.Published != state.Done {
		t.Errorf("%v, %+v: what was taken back counts as answered", err, state)
	}
	close(release)
	for r, err := range there.Results(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := there.Answer(t.Context(), bus.Position{Part: 1, Seq: 1000}, r.Data); err != nil { // an item may have two answers
			t.Fatal(err)
		}
		break
	}
	stop()
	w.worker(nil)
	_, said, o := w.second()
	got, out, err := w.work(t.Context(), o, nil)
	if err != nil || got != w.want || begun != 1 || out.Earlier == 0 {
		t.Fatalf("%v, %d batches begun, %+v", err, begun, out)
	}
	if !said.has(": " + terminal.Plural(out.Earlier, "item") + " answered meanwhile") {
		t.Errorf("%d items are from before; said %q", out.Earlier, said.all)
	}
}

// Who interrupts a run that another caller has taken over says nothing of it.
func TestInterruptedTooLate(t *testing.T) {
	w := newWorld(t, 300)
	_, said := w.early(true, func(c *caller.Caller) { must.Do(t, w.opened(c.Run()).Remove(t.Context())) })
	if said.has("stays at") {
		t.Errorf("said %q", said.all)
	}
}

// A resumed run begins anew at the servers, under another ID, and keeps what it has: also of a run that was over
// already, because the caller died while it ended.
func TestResumeMoves(t *testing.T) {
	for name, over := range map[string]bool{"it went on": false, "it was over": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 300)
			c := w.interrupted()
			if over {
				must.Get(w.opened(c.Run()).Put(t.Context(), caller.EndKey, nil))(t)
			}
			second, _, o := w.second()
			w.worker(nil)
			got, out, err := w.work(t.Context(), o, nil)
			if err != nil || out.Items != 300 || got != w.want {
				t.Fatalf("%v, %+v", err, out)
			}
			if second.Run() == c.Run() || !w.gone() {
				t.Errorf("run %s was %s", second.Run(), c.Run())
			}
			if m, err := journal.RunsOf(o.State).Manifest("run-000001"); err != nil || m.Cluster.Run != second.Run() {
				t.Errorf("%+v, %v", m.Cluster, err)
			}
		})
	}
}

// Of a run that is not at the servers any more, what the journal lacks is asked again.
func TestResumeRemoved(t *testing.T) {
	w := newWorld(t, 300)
	c := w.interrupted()
	must.Do(t, w.opened(c.Run()).Remove(t.Context()))
	w.worker(nil)
	_, said, o := w.second()
	got, _, err := w.work(t.Context(), o, nil)
	if err != nil || got != w.want || !said.has("is not at "+w.servers.URL()+" any more") {
		t.Fatalf("%v, said %q", err, said.all)
	}
}

// A caller whose run another one has taken over leaves it.
func TestTakenOver(t *testing.T) {
	w := newWorld(t, 300)
	c, _ := w.caller(caller.Options{})
	o := w.options("far", c)
	held := make(chan struct{})
	first := sync.OnceFunc(func() { close(held) })
	w.worker(func(*bus.Batch) bool {
		first()
		return false
	})
	ended := make(chan error, 1)
	go func() {
		_, _, err := w.work(t.Context(), o, nil)
		ended <- err
	}()
	<-held
	must.Do(t, w.opened(c.Run()).Remove(t.Context()))
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "or taken over by who resumed it") {
		t.Fatal(err)
	}
	if end := journal.RunsOf(w.state("far")).End("run-000001"); end == nil || end.Complete {
		t.Errorf("%+v", end)
	}
}
