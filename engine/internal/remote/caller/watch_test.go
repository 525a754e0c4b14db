package caller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/remote/bus"

	"github.com/racflow/racflow/engine/internal/process/governor"
)

// change is what a worker says.
func change(t *testing.T, w WorkerState, at time.Time) bus.Change {
	t.Helper()
	text, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	return bus.Change{Key: WorkerPrefix + w.Name, State: bus.State{Value: text, At: at}}
}

func listening(idle time.Duration) (*crew, chan string) {
	said := make(chan string, 100)
	o := Options{Servers: "nats://a", Idle: idle, Say: func(format string, args ...any) { said <- fmt.Sprintf(format, args...) }}
	o.fill()
	return newCrew("k3v9q2", o), said
}

// What workers are is said once, and what they lack with the name of the machine.
func TestWorkersAreNamed(t *testing.T) {
	c, said := listening(time.Hour)
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	c.ahead = time.Hour // the servers' clock is behind by that
	at := now.Add(-time.Hour)
	one := WorkerState{Name: "w-1", Host: "one", State: Joining}
	two := WorkerState{Name: "w-2", Host: "two", State: Lacks, Lacks: []string{"no model m", "no KEY"}}
	steps := []struct {
		do   func()
		want []string
	}{
		{func() { c.heard(change(t, one, at), now) }, nil},
		{func() { one.State = Working; c.heard(change(t, one, at), now) }, []string{"worker w-1 on one takes part"}},
		{func() { c.heard(change(t, one, at), now) }, nil},
		{func() { c.heard(change(t, two, at), now) }, []string{"worker w-2 on two takes no part: no model m; no KEY"}},
		{func() {
			c.heard(change(t, WorkerState{Name: "w-3", Host: "old", State: Working}, at.Add(-time.Minute)), now)
		}, nil}, // of another day
		{func() { c.miss(now.Add(WorkerGone)) }, nil},
		{func() { c.miss(now.Add(WorkerGone + 1)) }, []string{"worker w-1 on one has left", "worker w-2 on two has left"}},
		{func() { c.heard(change(t, one, at.Add(time.Minute)), now.Add(time.Minute)) }, []string{"worker w-1 on one takes part"}},
		{func() { c.heard(bus.Change{Key: WorkerPrefix + "w-1", Deleted: true}, now.Add(time.Minute)) }, []string{"worker w-1 on one has left"}},
		{func() { c.heard(bus.Change{Key: WorkerPrefix + "w-9", Deleted: true}, now) }, nil},
	}
	for i, step := range steps {
		step.do()
		var got []string
		for len(said) > 0 {
			got = append(got, <-said)
		}
		if slices.Sort(got); !slices.Equal(got, step.want) {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
}

// Of many workers not each is named, but what they lack is.
func TestManyWorkers(t *testing.T) {
	c, said := listening(time.Hour)
	now := time.Now()
	for i := range 3 * maxNamed {
		c.heard(change(t, WorkerState{Name: fmt.Sprint("w-", i), Host: "h", State: Working}, now), now)
	}
	if len(said) != maxNamed {
		t.Errorf("%d sentences", len(said))
	}
	c.heard(change(t, WorkerState{Name: "x", Host: "far", State: Lacks, Lacks: []string{"a plugin"}}, now), now)
	last := ""
	for len(said) > 0 {
		last = <-said
	}
	if last != "worker x on far takes no part: a plugin" {
		t.Error(last)
	}
}

// Where nobody takes part, that is said once, and again after somebody has left.
func TestNobodyTakesPart(t *testing.T) {
	c, said := listening(time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	changes := make(chan bus.Change)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.watch(ctx, changes, func() {})
	}()
	nobody := "run k3v9q2: nobody takes part: start racflow worker --on nats://a on the machines that are to answer"
	w := WorkerState{Name: "w-1", Host: "one", State: Working}
	for i, want := range []string{nobody, "worker w-1 on one takes part", "worker w-1 on one has left", nobody} {
		switch i {
		case 1:
			changes <- change(t, w, time.Now())
		case 2:
			changes <- bus.Change{Key: WorkerPrefix + "w-1", Deleted: true}
		}
		if got := <-said; got != want {
			t.Fatalf("%d: %q", i, got)
		}
	}
	cancel()
	<-ended
}

// What workers spent is summed up, also of those that have left.
func TestSpent(t *testing.T) {
	c, _ := listening(time.Hour)
	now := time.Now()
	for i := range 3 {
		calls := governor.Snapshot{Stages: []governor.StageCounts{{Stage: "sample.b", Counts: governor.Counts{Calls: 1 + i, Cost: .5}}}, Total: governor.Counts{Calls: 1 + i, Cost: .5}}
		if i == 1 {
			calls.Stages = append([]governor.StageCounts{{Stage: "embed.a", Counts: governor.Counts{Calls: 5}}}, calls.Stages...)
		}
		c.heard(change(t, WorkerState{Name: fmt.Sprint("w-", i), State: Working, Calls: calls}, now), now)
	}
	c.heard(bus.Change{Key: WorkerPrefix + "w-2", Deleted: true}, now)
	got := c.spent()
	if len(got.Stages) != 2 || got.Stages[0].Stage != "embed.a" || got.Stages[1].Calls != 6 || got.Stages[1].Cost != 1.5 || got.Total.Calls != 6 {
		t.Errorf("%+v", got)
	}
}

// As many batches may be under way as keep the workers busy, and no more than memory holds.
func TestWindow(t *testing.T) {
	c := &Caller{}
	c.crew, _ = listening(time.Hour)
	now := time.Now()
	if n := c.Window(64); n != maxItems/64 {
		t.Fatalf("%d batches", n)
	}
	enter := func() (n int) {
		for c.room.TryAcquire(1) {
			n++
		}
		return n
	}
	if n := enter(); n != floorItems/64 {
		t.Errorf("%d batches without workers", n)
	}
	for _, test := range []struct{ jobs, more int }{{4, 0}, {100, 88}, {1_000_000, maxItems/64 - floorItems/64 - 88}} {
		c.crew.heard(change(t, WorkerState{Name: fmt.Sprint("w-", test.jobs), State: Working, Jobs: test.jobs}, now), now)
		c.widen()
		if n := enter(); n != test.more {
			t.Errorf("%d more batches with a worker of %d, want %d", n, test.jobs, test.more)
		}
	}
	if n := c.Window(50_000); n != 2 {
		t.Errorf("%d batches of 50,000", n)
	}
}
