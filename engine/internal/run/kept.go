package run

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/stage"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
)

// Absent returns the passages without an entry in any knowledge of the run. In a collection that another
// program makes, it can check only passages named by id.
func (r *Run) Absent(ctx context.Context, passages []source.Gold) ([]source.Gold, error) {
	g := sought{passages: passages, found: make([]bool, len(passages)), ids: map[string][]int{}}
	for i, p := range passages {
		if p.Quote != "" {
			g.quotes = append(g.quotes, i)
			continue
		}
		for _, id := range p.IDs {
			g.ids[id] = append(g.ids[id], i)
		}
	}
	for _, k := range r.graph.Knowledge() {
		if !slices.Contains(g.found, false) {
			break
		}
		look := g.among
		if k.Attached() {
			look = g.amongAttached
		}
		if err := look(ctx, k); err != nil {
			return nil, err
		}
	}
	var absent []source.Gold
	for i, p := range passages {
		if !g.found[i] {
			absent = append(absent, p)
		}
	}
	return absent, nil
}

// sought is a list of passages to look for.
type sought struct {
	passages []source.Gold
	found    []bool           // by passage
	ids      map[string][]int // passages by the ids that name them
	quotes   []int            // passages that a quote names
}

// among looks for passages among all entries of a knowledge.
func (g *sought) among(ctx context.Context, k *knowledge.Knowledge) error {
	return k.Entries(ctx, sdk.Scan{Texts: len(g.quotes) > 0}, func(e sdk.Entry) {
		g.find(e.ID)
		for _, i := range g.quotes {
			g.found[i] = g.found[i] || g.passages[i].Is(e.ID, e.Meta, e.Text)
		}
	})
}

// amongAttached asks for passages by id. It does not read rows outside the sample, so quotes count as
// found.
func (g *sought) amongAttached(ctx context.Context, k *knowledge.Knowledge) error {
	for _, i := range g.quotes {
		g.found[i] = true
	}
	entries, err := k.Get(ctx, slices.Sorted(maps.Keys(g.ids)))
	for _, e := range entries {
		g.find(e.ID)
	}
	return err
}

func (g *sought) find(id string) {
	for _, i := range g.ids[id] {
		g.found[i] = true
	}
}

// HeldOut takes at most n rows of the election's knowledge through the pipeline, chosen at random.
// Each row is held out of the search for it, and of the rows that voters learn from. Every voter is
// asked, including paid voters. The returned run keeps the ballots until done is called.
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

// Kept passes the results of all rows to sink, in order and a batch at a time, without calling a
// stage: all rows have been worked on before. next returns the rows; io.EOF ends them. kept returns
// the earlier result of a row, with at least the parts that stages made, or the failure that left
// the row without an answer.
func (r *Run) Kept(ctx context.Context, next func() (source.Row, error), kept func(source.Row) (outcome.Result, *outcome.Failure), sink func([]outcome.Result) error) (outcome.Totals, error) {
	start := time.Now()
	totals := outcome.Totals{Callers: r.graph.Callers()}
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
