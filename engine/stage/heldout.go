package stage

import (
	"cmp"
	"context"
	"io"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/engine/holdout"
	"github.com/racflow/racflow/engine/launch"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/progress"
	"github.com/racflow/racflow/sdk"
)

// free returns a stage as it runs where rows are held out, without the fallbacks that
// ask services; nil: it does not run, as it asks one itself or is an election.
func free(s *pipeline.Stage) *pipeline.Stage {
	if s.Block == "elect" || s.Info.Network {
		return nil
	}
	one := *s
	one.Fallbacks = slices.DeleteFunc(slices.Clone(s.Fallbacks), func(f pipeline.Fallback) bool { return f.Stage.Info.Network })
	return &one
}

// runs returns a stage of the pipeline as the graph runs it; nil: it does not.
func (o *Options) runs(s *pipeline.Stage) *pipeline.Stage {
	switch {
	case o.Holdout == nil:
		return s
	case o.Calls:
		return s
	}
	return free(s)
}

// HoldOut returns a graph for items that are rows held out of the knowledge. It shares the
// knowledge of g, and has processes of its own, which done ends: of a stage that learns
// one for each fold. With calls it keeps ballots, services are asked, and the election is
// that of g; else neither takes part.
func (g *Graph) HoldOut(ctx context.Context, rows *holdout.Rows, calls bool, start launch.Func) (held *Graph, done func(), err error) {
	o := Options{Holdout: rows, Calls: calls, Ballots: calls, Strict: true, Refuses: g.options.Refuses, Fitted: g.options.Fitted, Scratch: g.options.Scratch, Fitting: g.options.Fitting}
	held = New(g.pipeline, o)
	held.knowledge, held.labels = g.knowledge, g.labels
	var mu sync.Mutex
	var own []io.Closer
	done = func() {
		for _, p := range own {
			_ = p.Close()
		}
		for _, remove := range held.folders {
			remove()
		}
	}
	processes := make([]any, len(held.stages))
	if calls && g.elect >= 0 {
		processes[g.elect] = g.stages[g.elect].process
	}
	err = held.Connect(ctx, processes, func(ctx context.Context, r launch.Request) (any, error) {
		r.HeldOut = true
		process, err := start(ctx, r)
		if c, ok := process.(io.Closer); ok {
			mu.Lock()
			defer mu.Unlock()
			own = append(own, c)
		}
		return process, err
	})
	if err != nil {
		done()
		return nil, nil, err
	}
	return held, done, nil
}

// heldBatch is how many rows that are held out travel together.
const heldBatch = 64

// voted takes held-out rows through the graph, and returns them in their order with the
// votes that count for an election. Rows that fail are left out; if all do, that is an
// error.
func (g *Graph) voted(ctx context.Context, election *stage) (rows []sdk.TrainingRow, err error) {
	items, needs := g.options.Holdout.Items, append(slices.Clone(election.in.needs), election.index)
	for some := range slices.Chunk(items, heldBatch*Window) {
		records := make([]*Record, len(some))
		for i, row := range some {
			records[i] = g.NewRecord(row)
		}
		var group errgroup.Group
		for batch := range slices.Chunk(records, heldBatch) {
			group.Go(func() error {
				g.Run(ctx, batch)
				return nil
			})
		}
		_ = group.Wait() // its functions return nil: every error is a record's
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		for _, rec := range records {
			samples := rec.samples(g.voters)
			if err := election.accept(ctx, rec, samples); err != nil {
				rec.fail(election, err)
			}
			if f := cmp.Or(rec.failure(needs), rec.missing(needs)); f != nil {
				err = f
				continue
			}
			rows = append(rows, sdk.TrainingRow{ID: rec.id, Label: rec.Row.Label, Samples: samples, HeldOut: true})
		}
		election.progress(progress.Step{Doing: "fitting", Unit: "row", Done: int64(records[len(records)-1].Row.Line), Total: int64(len(items))})
	}
	if len(rows) > 0 {
		return rows, nil
	}
	return nil, err
}
