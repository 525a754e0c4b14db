package caller

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/engine/internal/remote/bus"

	"github.com/racflow/racflow/engine/internal/remote/lease"
	"github.com/racflow/racflow/engine/internal/run/journal"
)

var (
	now  = time.Date(2026, 11, 23, 18, 0, 0, 0, time.UTC)
	soon = now.Add(-time.Second)
	long = now.Add(-time.Minute)
	what = &Definition{
		Run: "k3v9q2", Caller: "here-1", Version: "1.2.3", Started: now.Add(-time.Hour),
		Manifest: journal.Manifest{ID: "run-000007", File: "/p.hcl", Pipeline: "p", Input: manifestInput("/items.tsv")},
	}
)

func manifestInput(path string) journal.SeenFile { return journal.SeenFile{Path: path} }

// put makes the state of a key.
func put(t *testing.T, at time.Time, value any) bus.State {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return bus.State{Value: data, At: at}
}

// Before the caller knows how many batches there are, what workers say counts. Who has said nothing for WorkerGone is not gone yet.
func TestTotalUnknown(t *testing.T) {
	last := put(t, now.Add(-WorkerGone), WorkerState{State: Working, Items: 7})
	caller := put(t, soon, SeenCaller{Published: 3})
	s := decide(what, map[string]bus.State{"caller": caller, "worker.a": last}, bus.Backlog{Waiting: 2, Now: now})
	if s.Items != (StatusItems{Answered: 7}) || s.Working() != 1 {
		t.Errorf("%+v, %d workers", s.Items, s.Working())
	}
}

func TestStatus(t *testing.T) {
	a := WorkerState{Name: "a", Host: "one", State: Working, Batches: 60, Items: 3840, Failed: 3, Rate: 200, Cost: .5, Tokens: 1000}
	b := WorkerState{Name: "b", Host: "two", State: Working, Batches: 40, Items: 2560, Failed: 1, Rate: 150, Cost: .25, Tokens: 500}
	c := WorkerState{Name: "c", Host: "three", State: Lacks, Lacks: []string{"the environment has no KEY"}}
	caller := SeenCaller{Name: "here-1", Host: "here", Published: 160, Done: 90, Total: 160, Items: 10200}
	keeper := lease.Record{ID: "id", Name: "here-1", Limits: lease.Limits{Budget: lease.Amount{Cost: 5}, Blocks: []pipeline.Limit{{Name: "api", Concurrency: 64}}},
		Ceiling: governor.Spending{Amount: lease.Amount{Cost: 1.25}}, Holders: []string{"a"}}
	got := decide(what, map[string]bus.State{
		"caller": put(t, soon, caller), "worker.a": put(t, soon, a), "worker.b": put(t, long, b), "worker.c": put(t, soon, c),
		"worker.d": {Value: []byte("{"), At: soon}, "keeper": put(t, soon, keeper),
	}, bus.Backlog{Waiting: 50, UnderWay: 10, Oldest: now.Add(-12 * time.Second), Now: now})
	oldest := now.Add(-12 * time.Second)
	want := &Status{
		Run: "k3v9q2", State: RunWorking, Started: now.Add(-time.Hour), Version: "1.2.3", File: "/p.hcl", Pipeline: "p", Input: "/items.tsv", Journal: "run-000007",
		Items:   StatusItems{Answered: 6375, Total: 10200, Rate: 200, Left: 19.125}, // 100 of 160 batches; who is gone is no hope
		Batches: StatusBatches{Published: 160, Answered: 100, Done: 90, Total: 160, Waiting: 50, UnderWay: 10, Oldest: &oldest, Age: 12},
		Caller:  &StatusCaller{Name: "here-1", Host: "here", Seen: soon},
		Keeper:  &StatusKeeper{Name: "here-1", Seen: soon, Holders: 1, Ceiling: keeper.Ceiling.Amount, Budget: lease.Amount{Cost: 5}, Blocks: keeper.Limits.Blocks},
		Workers: []StatusWorker{{WorkerState: a, Seen: soon}, {WorkerState: b, Seen: long, Gone: true}, {WorkerState: c, Seen: soon},
			{WorkerState: WorkerState{Name: "d", State: Lacks, Lacks: []string{"what it says cannot be read: it may be of another version"}}, Seen: soon}},
		Failed: 4, Cost: .75, Tokens: 1500,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, c := range []struct{ got, want string }{
		{got.Keeper.String(), `here-1 admits the calls of 1 worker, 1.25 of 5.00, limit "api" of 64 at a time`},
		{got.Caller.String(), "here-1 on here"},
		{(&StatusKeeper{Name: "a", Gone: true, Seen: long, Holders: 2}).String(), "a, gone since 17:59:00, admits the calls of 2 workers"},
		{(&StatusCaller{Name: "a", Host: "b", Detached: true, Attached: "c"}).String(), "a on b, has left the run to its workers; c has come back to it"},
		{got.Workers[1].Is(), "gone since 17:59:00"},
	} {
		if c.got != c.want {
			t.Errorf("it says %q, want %q", c.got, c.want)
		}
	}
	if n := got.Working(); n != 1 || !got.Attended() {
		t.Errorf("%d workers take part, and a caller is there: %v", n, got.Attended())
	}
}

func TestState(t *testing.T) {
	working, lacking := WorkerState{State: Working}, WorkerState{State: Lacks}
	publishing := SeenCaller{Name: "here-1", Published: 5, Done: 2}
	whole := SeenCaller{Name: "here-1", Published: 5, Done: 5, Total: 5}
	left := SeenCaller{Name: "here-1", Published: 5, Total: 5, Detached: true}
	type states map[string]bus.State
	for name, c := range map[string]struct {
		states     states
		queue      int
		want, says string
	}{
		"nothing yet":            {states{}, 0, RunWaiting, "has not begun"},
		"workers alone":          {states{"worker.a": put(t, soon, working)}, 0, RunWaiting, "has not begun"},
		"at work":                {states{"caller": put(t, soon, publishing), "worker.a": put(t, soon, working)}, 3, RunWorking, ""},
		"joining":                {states{"caller": put(t, soon, publishing), "worker.a": put(t, soon, WorkerState{State: Joining})}, 3, RunWorking, ""},
		"the caller is slow":     {states{"caller": put(t, soon, publishing), "worker.a": put(t, soon, working)}, 0, RunWorking, ""},
		"no worker":              {states{"caller": put(t, soon, publishing)}, 3, RunWaiting, "racflow worker --on"},
		"the only one died":      {states{"caller": put(t, soon, publishing), "worker.a": put(t, long, working)}, 3, RunWaiting, "no worker is there"},
		"all lack something":     {states{"caller": put(t, soon, publishing), "worker.a": put(t, soon, lacking)}, 3, RunWaiting, "lacks something"},
		"one lacks something":    {states{"caller": put(t, soon, publishing), "worker.a": put(t, soon, lacking), "worker.b": put(t, soon, working)}, 3, RunWorking, ""},
		"detached":               {states{"caller": put(t, long, left), "worker.a": put(t, soon, working)}, 3, RunDetached, ""},
		"detached and answered":  {states{"caller": put(t, long, left)}, 0, RunAnswered, "runs attach k3v9q2"},
		"the caller died":        {states{"caller": put(t, long, publishing), "worker.a": put(t, soon, working)}, 3, RunDetached, "here-1 has said nothing since 2026-11-23T17:59:00Z"},
		"died and all is idle":   {states{"caller": put(t, long, publishing), "worker.a": put(t, soon, working)}, 0, RunWaiting, "runs resume"},
		"died with all answered": {states{"caller": put(t, long, SeenCaller{Published: 5, Total: 5})}, 0, RunAnswered, "runs attach"},
		"the caller writes":      {states{"caller": put(t, soon, whole), "worker.a": put(t, soon, working)}, 0, RunWorking, "every answer is with its caller"},
		"over":                   {states{"caller": put(t, soon, whole), "end": put(t, soon, nil)}, 0, RunEnded, ""},
		"broken off":             {states{"caller": put(t, soon, publishing), "end": put(t, soon, nil)}, 3, RunEnded, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := decide(what, c.states, bus.Backlog{Waiting: c.queue, Now: now})
			if s.State != c.want || !strings.Contains(s.Why, c.says) || c.says == "" && s.Why != "" {
				t.Errorf("it is %s (%s), want %s (%s)", s.State, s.Why, c.want, c.says)
			}
		})
	}
}
