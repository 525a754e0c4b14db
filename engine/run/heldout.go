package run

import (
	"context"
	"io"

	"github.com/racflow/racflow/engine/launch"
	"github.com/racflow/racflow/engine/observe"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/engine/stage"
)

// HeldOut takes at most n rows of the election's knowledge through the pipeline, chosen
// at random, each of them kept out of all that is found for it and that voters learn
// from. Every voter is asked, those that cost money, too. The run that it returns keeps
// their ballots, until done is called.
func (r *Run) HeldOut(ctx context.Context, n int, start launch.Func, sink func([]outcome.Result) error) (held *Run, t outcome.Totals, done func(), err error) {
	rows, err := r.graph.Choose(ctx, n)
	if err != nil {
		return nil, t, nil, err
	}
	graph, done, err := r.graph.HoldOut(ctx, rows, true, start)
	if err != nil {
		return nil, t, nil, err
	}
	held = &Run{pipeline: r.pipeline, observe: observe.Or(nil), graph: graph, batch: r.batch, window: r.window, records: map[int]*stage.Record{}}
	next := 0
	t, err = held.Items(ctx, func() (source.Row, error) {
		if next == len(rows.Items) {
			return source.Row{}, io.EOF
		}
		next++
		return rows.Items[next-1], nil
	}, nil, sink)
	if err != nil {
		done()
		return nil, t, nil, err
	}
	return held, t, done, nil
}
