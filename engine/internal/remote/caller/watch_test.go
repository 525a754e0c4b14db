package caller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/process/governor"
)

// listening is a caller, and what it says.
func listening() (c *Caller, heard func() []string) {
	var said []string
	say := func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	c = &Caller{o: Options{Run: "k3v9q2", Servers: "nats://a", Idle: time.Minute, Say: say, Log: slog.New(slog.DiscardHandler)}, crew: crew{said: map[string]string{}}}
	return c, func() []string {
		all := said
		said = nil
		return all
	}
}

// What workers are is said once, and what they lack with the name of the machine; and where nobody takes part, that is said
// once, and again after somebody has left.
func TestWorkersAreNamed(t *testing.T) {
	c, heard := listening()
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	one := StatusWorker{WorkerState: WorkerState{Name: "w-1", Host: "one", State: Joining}}
	two := StatusWorker{WorkerState: WorkerState{Name: "w-2", Host: "two", State: Lacks, Lacks: []string{"no model m", "no KEY"}}}
	old := StatusWorker{WorkerState: WorkerState{Name: "w-3", Host: "old", State: Working}, Gone: true}
	nobody := "run k3v9q2: nobody takes part: start racflow worker --on nats://a on the machines that are to answer"
	for i, step := range []struct {
		change func()
		after  time.Duration
		want   []string
	}{
		{func() {}, 0, nil},
		{func() {}, time.Minute, []string{"worker w-2 on two takes no part: no model m; no KEY", nobody}},
		{func() { one.State = Working }, time.Hour, []string{"worker w-1 on one takes part"}},
		{func() {}, time.Hour, nil},
		{func() { one.Gone, two.State = true, Left }, time.Hour, []string{"worker w-1 on one has left", "worker w-2 on two has left"}},
		{func() {}, time.Hour + time.Minute, []string{nobody}},
		{func() { one.Gone = false }, 2 * time.Hour, []string{"worker w-1 on one takes part"}},
	} {
		step.change()
		workers := []StatusWorker{one, old}
		if step.after > 0 {
			workers = append(workers, two)
		}
		c.announce(&Status{Workers: workers}, now.Add(step.after))
		if got := heard(); !slices.Equal(got, step.want) {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
}

// Of many workers not each is named, but what they lack is.
func TestManyWorkers(t *testing.T) {
	c, heard := listening()
	s := &Status{Workers: []StatusWorker{{WorkerState: WorkerState{Name: "x", Host: "far", State: Lacks, Lacks: []string{"a plugin"}}}}}
	for i := range maxNamed {
		s.Workers = append(s.Workers, StatusWorker{WorkerState: WorkerState{Name: fmt.Sprint("w-", i), Host: "h", State: Working}})
	}
	c.announce(s, time.Now())
	if got := strings.Join(heard(), "; "); got != "worker x on far takes no part: a plugin" {
		t.Error(got)
	}
}

// What workers spent is summed up, also of those that have left.
func TestSpent(t *testing.T) {
	s := &Status{}
	for i := range 3 {
		calls := governor.Snapshot{Stages: []governor.StageCounts{{Stage: "sample.b", Counts: governor.Counts{Calls: 1 + i, Cost: .5}}}, Total: governor.Counts{Calls: 1 + i, Cost: .5}}
		if i == 1 {
			calls.Stages = append([]governor.StageCounts{{Stage: "embed.a", Counts: governor.Counts{Calls: 5}}}, calls.Stages...)
		}
		s.Workers = append(s.Workers, StatusWorker{WorkerState: WorkerState{Name: fmt.Sprint("w-", i), State: []string{Working, Left, Lacks}[i], Calls: calls}, Gone: i > 0})
	}
	got := s.spent()
	if len(got.Stages) != 2 || got.Stages[0].Stage != "embed.a" || got.Stages[1].Calls != 6 || got.Stages[1].Cost != 1.5 || got.Total.Calls != 6 {
		t.Errorf("%+v", got)
	}
}

// As many batches may be under way as memory holds.
func TestWindow(t *testing.T) {
	for items, want := range map[int]int{0: maxItems, 64: maxItems / 64, 50_000: 2} {
		if n := new(Caller).Window(items); n != want {
			t.Errorf("%d batches of %d items, want %d", n, items, want)
		}
	}
}

// A look that waits for servers that are away holds up no other, which has less time.
func TestLookEnds(t *testing.T) {
	c := &Caller{looking: make(chan struct{}, 1)}
	c.looking <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.look(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
