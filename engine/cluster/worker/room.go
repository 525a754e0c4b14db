package worker

import (
	"context"

	"github.com/racflow/racflow/engine/cluster/bus"
	"github.com/racflow/racflow/engine/cluster/definition"
	"github.com/racflow/racflow/engine/governor"
	"github.com/racflow/racflow/engine/run"
)

// room is a run at the servers, as far as the loop needs it: *bus.Run (servers.go).
type room interface {
	Definition() []byte
	// Over waits until the run is over, and returns nil; or an error where ctx ends before.
	Over(ctx context.Context) error
	Take(ctx context.Context) (batch, error)
	Answer(ctx context.Context, at bus.Position, data []byte) (first bool, err error)
	// Tell puts the worker's state, and Forget removes it.
	Tell(ctx context.Context, state definition.Worker) error
	Forget(ctx context.Context) error
}

// batch is *bus.Batch.
type batch struct {
	bus.Position
	Data       []byte
	Deliveries int
	Done       func(ctx context.Context) error
	Return     func() error
	Lost       <-chan struct{} // is closed when another may have it
	Past       <-chan struct{} // is closed when a later part of the run is on
}

// joined is a run's pipeline once this worker takes part in it.
type joined interface {
	// Size is how many batches are worked on at a time.
	Size() int
	Take(ctx context.Context, o run.Order) (run.Answers, error)
	// Trouble is why the stages cannot go on on this machine, by answers of theirs; nil: they
	// can, or nobody's could.
	Trouble(a run.Answers) error
	// Calls are the pipeline's calls of services so far.
	Calls() governor.Snapshot
	Close()
}

// opener opens the pipeline of a run. What this worker lacks for it is a
// *lacksError. The pipeline ends with ctx.
type opener func(ctx context.Context, r room, d *definition.Definition) (joined, error)
