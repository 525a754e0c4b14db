package run

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/stage"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
)

// Absent returns the passages without an entry in any knowledge of the run. For a collection that another
// program makes, it knows only of passages named by id that they are absent.
func (r *Run) Absent(ctx context.Context, passages []source.Gold) ([]source.Gold, error) {
	absent := make([]bool, len(passages))
	ids, quotes := map[string][]int{}, []int{}
	for i, g := range passages {
		if absent[i] = true; g.Quote != "" {
			quotes = append(quotes, i)
			continue
		}
		for _, id := range g.IDs {
			ids[id] = append(ids[id], i)
		}
	}
	for _, k := range r.graph.Knowledge() {
		if !slices.Contains(absent, true) {
			break
		}
		if k.Attached() { // rows outside of its sample are not read
			for _, i := range quotes {
				absent[i] = false
			}
			entries, err := k.Get(ctx, slices.Sorted(maps.Keys(ids)))
			if err != nil {
				return nil, err
			}
			for _, e := range entries {
				for _, i := range ids[e.ID] {
					absent[i] = false
				}
			}
			continue
		}
		if err := k.Entries(ctx, sdk.Scan{Texts: len(quotes) > 0}, func(e sdk.Entry) {
			for _, i := range ids[e.ID] {
				absent[i] = false
			}
			for _, i := range quotes {
				absent[i] = absent[i] && !passages[i].Is(e.ID, e.Meta, e.Text)
			}
		}); err != nil {
			return nil, err
		}
	}
	var all []source.Gold
	for i, g := range passages {
		if absent[i] {
			all = append(all, g)
		}
	}
	return all, nil
}

// HeldOut takes at most n rows of the election's knowledge through the pipeline, chosen at random.
// Each is held out of the searches for it and of what voters learn from. It asks every voter,
// including those that cost money. The run that it returns keeps their ballots until done is
// called.
func (r *Run) HeldOut(ctx context.Context, n int, start stage.Launch, sink func([]outcome.Result) error) (held *Run, t outcome.Totals, done func(), err error) {
	rows, err := r.graph.Choose(ctx, n)
	if err != nil {
		return nil, t, nil, err
	}
	graph, done, err := r.graph.HoldOut(ctx, rows, true, start)
	if err != nil {
		return nil, t, nil, err
	}
	held = &Run{pipeline: r.pipeline, observe: outcome.ObserverOr(nil), graph: graph, batch: r.batch, window: r.window, records: map[int]*stage.Record{}}
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

// Kept gives sink the results of all rows that next returns (io.EOF ends them), in order and a
// batch at a time, without calling a stage: every row has been worked on before. kept returns the
// earlier result of a row, with at least the parts that stages made, or the failure that left the
// row without an answer.
func (r *Run) Kept(ctx context.Context, next func() (source.Row, error), kept func(source.Row) (outcome.Result, *outcome.Failure), sink func([]outcome.Result) error) (outcome.Totals, error) {
	start := time.Now()
	var totals outcome.Totals
	for ended := false; !ended; {
		var batch []outcome.Result
		for len(batch) < batchSize {
			row, err := next()
			if ended = errors.Is(err, io.EOF); ended {
				break
			}
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return totals, err
			}
			rec := r.graph.NewRecord(row)
			if row.Err == nil {
				earlier, left := kept(row)
				if left != nil {
					totals.AddLeft(left)
					continue
				}
				rec.Given = &stage.Given{From: stage.Earlier, Result: earlier}
			}
			result, _ := r.graph.Result(rec)
			totals.Add(result)
			batch = append(batch, result)
		}
		if err := sink(batch); err != nil {
			return totals, err
		}
	}
	r.sum(&totals, start)
	return totals, nil
}

// sum sets the totals that are known once the items are done.
func (r *Run) sum(totals *outcome.Totals, start time.Time) {
	for _, f := range r.graph.Halted() {
		outcome.Count(&totals.Missing, f, 0)
	}
	totals.Elapsed, totals.Stages, totals.Distributions = time.Since(start), r.graph.Times(), r.graph.Distributions()
}
