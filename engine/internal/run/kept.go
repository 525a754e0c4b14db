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

// Absent returns those of the passages that no knowledge of the run has an entry of. Of a collection that
// somebody else makes only entries that are named by their ids are known to be absent.
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
		if k.Attached() { // what is outside of its sample is not read
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

// Spending is what decides about paid voters where the stages are asked on other machines (package
// spend).
type Spending interface {
	// Pass is the one that the run is in.
	Pass() Pass
	// Note adds to the bill of the item of a line: what was forecast there, or asked.
	Note(line int, b outcome.Bill)
}

// Work takes rows of a run through the stages that another process began, for its Remote.
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

// since is what the stages have done since the last time.
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

// HeldOut takes at most n rows of the election's knowledge through the pipeline, chosen
// at random, each of them kept out of all that is found for it and that voters learn
// from. Every voter is asked, those that cost money, too. The run that it returns keeps
// their ballots, until done is called.
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

// Kept gives sink the results of all rows that next returns (io.EOF ends them), in their
// order and a batch at a time, where each has been answered before: kept says what became of
// a row, of which the result needs no more than what the stages made of it, or for want of what it
// is left. No stage is called.
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

// sum sets what is known of a run once its items are done.
func (r *Run) sum(totals *outcome.Totals, start time.Time) {
	for _, f := range r.graph.Halted() {
		outcome.Count(&totals.Missing, f, 0)
	}
	totals.Elapsed, totals.Stages, totals.Distributions = time.Since(start), r.graph.Times(), r.graph.Distributions()
}

// Remote answers batches in the place of this machine's stages.
type Remote interface {
	// Answer returns what became of the rows of an order, once all of it is known. It may be
	// called by several goroutines at once. An error says that nobody can answer: it is not
	// the rows'.
	Answer(ctx context.Context, o Order) (Answers, error)
	// Window is how many orders are to be under way at a time, of so many items each.
	Window(items int) int
}

// Pass says which of a run's passes over its input an order belongs to (package spend).
type Pass uint8

// The passes of a run. One that may spend as much as it likes has a single one.
const (
	Once   Pass = iota // every voter is asked
	Survey             // no paid voter is asked: Answers.Bills say what asking takes
	Asking             // the paid voters are asked
)

// Order is rows to be answered together.
type Order struct {
	Rows []source.Row // none has an Err
	Pass Pass
}

// Answers are what became of the rows of an order.
type Answers struct {
	Results []outcome.Result // of each row, in their order; of those that are left, nothing
	// Left are the rows, by position, that have no answer because a voter had to stop and the
	// others have none; the error is that voter's.
	Left  map[int]error
	Bills map[int]outcome.Bill // by position: what the paid voters were asked, or asking takes
	// Halted are the stages that had to stop, without which others answer.
	Halted []*outcome.Failure
	Ended  error // why no more rows can be answered: a stage that all need had to stop; nil: they can

	Distributions []string            // voters that return distributions
	Times         []outcome.StageTime // the stages' work since the last answers of the same worker
}
