package status

import (
	"context"

	"github.com/racflow/racflow/engine/cluster/bus"
	"github.com/racflow/racflow/engine/cluster/definition"
)

// Of says how a run is now. It waits for servers that cannot answer, until ctx ends.
func Of(ctx context.Context, run *bus.Run) (*Status, error) {
	d, err := definition.Decode(run.Definition())
	if err != nil {
		return nil, err
	}
	states, err := run.All(ctx, "")
	if err != nil {
		return nil, err
	}
	b, err := run.Backlog(ctx) // after the states: what is answered meanwhile is not taken for lost
	if err != nil {
		return nil, err
	}
	return decide(d, states, b), nil
}
