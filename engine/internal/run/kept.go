package run

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/stage"
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

// Spending decides about paid voters for stages that run on other machines (package spend).
type Spending interface {
	// Pass returns the current pass of the run.
	Pass() Pass
	// Note adds to the bill of the item of a line: a forecast, or actual requests.
	Note(line int, b outcome.Bill)
}

// Work takes rows through the stages for another process, whose Remote handed them over.
func (r *Run) Work(ctx context.Context, rows []source.Row) (Answers, error) {
	b, err := r.Batch(ctx, rows, nil)
	if err != nil {
		return Answers{}, err
	}
	return Answers{
		Results: b.Results, Left: b.Left, Halted: r.graph.Halted(), Ended: r.graph.Err(),
		Distributions: r.graph.Distributions(), Times: r.since(),
	}, nil
}

// since returns the stages' work since the last call.
func (r *Run) since() []outcome.StageTime {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.graph.Times()
	fresh := make([]outcome.StageTime, len(now))
	for i, t := range now {
		fresh[i] = t
		if i < len(r.reported) { // the stages are the same each time
			fresh[i].Rows -= r.reported[i].Rows
			fresh[i].Busy -= r.reported[i].Busy
		}
	}
	r.reported = now
	return fresh
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
				rec.Given = stage.Kept(stage.Earlier, earlier)
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

// Remote answers batches instead of this machine's stages.
type Remote interface {
	// Answer returns the answers to an order once all are known. Several goroutines may call it at
	// once. An error means that no machine can answer, and says nothing about the rows.
	Answer(ctx context.Context, o Order) (Answers, error)
	// Window returns how many orders, of so many items each, should be in work at a time.
	Window(items int) int
}

// Pass is one of a run's passes over its input (package spend).
type Pass uint8

// Passes of a run. A run without a spending limit has only Once.
const (
	Once   Pass = iota // every voter is asked
	Survey             // no paid voter is asked: Answers.Bills has the forecasts
	Asking             // the paid voters are asked
)

// Order is a set of rows to answer together.
type Order struct {
	Rows []source.Row // none has an Err
	Pass Pass
}

// Answers is the outcome of an order.
type Answers struct {
	Results []outcome.Result // of each row, in order; empty for rows that are left
	// Left has the rows, by position, without an answer because a voter had to stop and the others
	// have none; the error is that voter's.
	Left  map[int]error
	Bills map[int]outcome.Bill // by position: actual or forecast bills of the paid voters
	// Halted are the stages that had to stop; the others answer without them.
	Halted []*outcome.Failure
	Ended  error // why no more rows can be answered: a stage that all need had to stop; nil: more can

	Distributions []string            // voters that return distributions
	Times         []outcome.StageTime // the stages' work since the last answers of the same worker
}
