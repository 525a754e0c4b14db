package worker

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/racflow/racflow/engine/cluster/definition"
	"github.com/racflow/racflow/engine/governor"
)

const (
	// rateOver is how long the time is that a rate is of.
	rateOver = 30 * time.Second
	// told is how long a state may take to the servers.
	told = 5 * time.Second
)

// status is what others see of this worker in a run.
type status struct {
	mu     sync.Mutex
	now    definition.Worker
	calls  func() governor.Snapshot // of the pipeline that is open; nil: none is
	before governor.Snapshot        // of those that were open before
	marks  []mark                   // of the last rateOver, oldest first

	changed chan struct{} // something is to be told at once
}

// mark is how many items had been answered at a time.
type mark struct {
	at    time.Time
	items int64
}

func newStatus(name string) *status {
	host, _ := os.Hostname()
	return &status{
		now:     definition.Worker{Name: name, Host: host, PID: os.Getpid(), Since: time.Now().UTC(), State: definition.Joining},
		changed: make(chan struct{}, 1),
	}
}

// set says what the worker does, and what it lacks for that.
func (s *status) set(state string, lacks ...string) {
	s.mu.Lock()
	s.now.State, s.now.Lacks = state, lacks
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// opened takes calls of services from a pipeline, until closed.
func (s *status) opened(p joined) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = p.Calls
}

// closed keeps what the pipeline called.
func (s *status) closed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before, s.calls = s.sum(), nil
}

// sum are all calls so far. The caller holds mu.
func (s *status) sum() governor.Snapshot {
	if s.calls == nil {
		return s.before
	}
	return s.before.Plus(s.calls())
}

// count adds a batch that was answered.
func (s *status) count(items, failed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.Batches++
	s.now.Items += int64(items)
	s.now.Failed += int64(failed)
}

// state is what is told now.
func (s *status) state(now time.Time) definition.Worker {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.now
	w.Calls = s.sum()
	w.Cost, w.Tokens = w.Calls.Total.Cost, w.Calls.Total.InputTokens+w.Calls.Total.OutputTokens
	s.marks = append(s.marks, mark{now, w.Items})
	for len(s.marks) > 2 && now.Sub(s.marks[1].at) >= rateOver {
		s.marks = s.marks[1:]
	}
	if first := s.marks[0]; now.After(first.at) {
		w.Rate = float64(w.Items-first.items) / now.Sub(first.at).Seconds()
	}
	return w
}

// keep tells the state until ctx ends, once more then, and has it forgotten.
func (s *status) keep(ctx context.Context, r room) {
	for ctx.Err() == nil {
		s.tell(ctx, r)
		next := time.NewTimer(definition.WorkerEvery)
		select {
		case <-s.changed:
		case <-next.C:
		case <-ctx.Done():
		}
		next.Stop()
	}
	s.tell(ctx, r)
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), told)
	defer cancel()
	_ = r.Forget(within) // else it ages, and others see that
}

// tell puts the state, also once ctx has ended. Where that fails, the next one says the same and more.
func (s *status) tell(ctx context.Context, r room) {
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), told)
	defer cancel()
	_ = r.Tell(within, s.state(time.Now()))
}
