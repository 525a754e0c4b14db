package run

import (
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk/wire"
)

const (
	// batchSize is how many items travel together where the file does not say.
	batchSize = 64
	// networkBatchSize is the same where a stage asks other machines: an answer
	// that was paid for is then not kept waiting for many others.
	networkBatchSize = 8
	// window is how many batches are under way at a time where all stages work
	// on this machine: enough to keep every stage busy while the slowest one
	// works on another batch.
	window = 4
)

const (
	// ahead is how many items are under way for each call that a network stage
	// may make at a time. Most of them wait: where a rule sends a fifth of the
	// items to the service, five are needed per call, and while the first item
	// is told to come back later, the answers of the others wait for it.
	ahead    = 32
	minAhead = 256  // with a service that takes few calls
	maxAhead = 8192 // what is under way is kept in memory
)

// measure decides how many items travel together and how many are under way.
func (r *Run) measure() {
	calls := 0 // of the stage that may make the most at a time
	for _, s := range r.stages {
		if s == nil {
			continue
		}
		calls = max(calls, callsOf(s.Stage))
		for _, f := range s.Fallbacks {
			calls = max(calls, callsOf(f.Stage))
		}
	}
	r.window = window
	r.batch = r.pipeline.Batch
	if r.batch == 0 {
		r.batch = batchSize
		if calls > 0 {
			r.batch = networkBatchSize
		}
	}
	if r.network = calls > 0; r.network {
		items := min(max(calls*ahead, minAhead), maxAhead)
		r.window = max(window, items/r.batch)
	}
	for _, s := range r.stages {
		if s != nil {
			s.slots = r.slotsOf(s.Stage)
		}
	}
}

// callsOf is how many calls of a stage its service takes at a time; 0: it asks
// no service.
func callsOf(s *pipeline.Stage) int {
	switch {
	case !s.Info.Network:
		return 0
	case s.Workers > 0:
		return s.Workers
	}
	return s.Concurrency()
}

// slotsOf bounds the calls of a stage that are under way. A network stage is
// given more than its service takes, so that the next one is ready when a call
// ends, yet not so many that they spend their time waiting. A local stage
// beside it would otherwise be called by every batch at once.
func (r *Run) slotsOf(s *pipeline.Stage) chan struct{} {
	switch {
	case !r.network:
		return nil
	case !s.Info.Network:
		return make(chan struct{}, window*max(s.Workers, 1))
	case s.Workers > 0:
		return make(chan struct{}, s.Workers)
	}
	return make(chan struct{}, min(2*s.Concurrency(), wire.Window))
}
