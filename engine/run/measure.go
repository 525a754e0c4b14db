package run

import "github.com/racflow/racflow/engine/stage"

const (
	// batchSize is how many items travel together where the file does not say.
	batchSize = 64
	// networkBatchSize is the same where a stage asks other machines: an answer that
	// was paid for does not wait for many others then.
	networkBatchSize = 8
)

const (
	// ahead is how many items are under way for each call that a network stage may
	// make at a time. Most of them wait: where a rule sends a fifth of the items to the
	// service, five are needed per call, and while the first item waits for another
	// try, the answers of the others wait for it.
	ahead    = 32
	minAhead = 256  // with a service that takes few calls
	maxAhead = 8192 // what is under way is kept in memory
)

// measure decides how many items travel together and how many are under way.
func (r *Run) measure() {
	defer func() {
		if r.remote != nil {
			r.window = r.remote.Window(r.batch)
		}
	}()
	r.batch, r.window = r.pipeline.Batch, stage.Window
	calls := stage.Calls(r.pipeline)
	r.gathers = stage.Gathers(r.pipeline)
	switch {
	case r.batch > 0:
	case r.gathers:
		r.batch, r.window = stage.Gathered, 0 // one at a time: it waits for hours, and is kept in memory
		return
	case calls > 0:
		r.batch = networkBatchSize
	default:
		r.batch = batchSize
	}
	if calls > 0 {
		items := min(max(calls*ahead, minAhead), maxAhead)
		r.window = max(r.window, items/r.batch)
	}
}
