package run

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/stage"
	"github.com/racflow/racflow/sdk"
)

// Journal keeps results as soon as they are known, so that a run that ended early can
// be resumed.
type Journal interface {
	// Answered returns what an earlier part of the run answered to a row; of the
	// result only what the stages made of it.
	Answered(source.Row) (outcome.Result, bool)
	// Keep is given results in any order, by several goroutines at once.
	Keep([]outcome.Result) error
}

// Recaller is a Journal that has answers of another run, which may hold in this one (package
// again).
type Recaller interface {
	Journal
	// Recall returns the answer to a row. It holds as it is, or where the item gets from the
	// knowledge what its Basis says.
	Recall(source.Row) (r outcome.Result, holds, ok bool)
	// Take is given answers that hold, as Keep.
	Take([]outcome.Result) error
}

// answered is what became of a batch.
type answered struct {
	results []outcome.Result // without those that are left
	left    []left           // these
	later   []int            // lines of items, left or not, for want of a service
	earlier int
	taken   int
	err     error
}

// left is an item without an answer, by its position in the batch, and why.
type left struct {
	at  int
	why *outcome.Failure
}

// answer answers a batch and gives the journal what it did not have.
func (r *Run) answer(ctx context.Context, records []*stage.Record, journal Journal) answered {
	start := time.Now()
	r.earlier(journal, records...)
	ctx, done := r.begin(ctx, records)
	r.reviewed(records...)
	if err := r.layers(journal).answer(ctx, records); err != nil {
		done(nil)
		return answered{err: err}
	}
	a, fresh, taken := r.collect(records, start)
	if ctx.Err() != nil { // the batch was cut short: failures are not the items'
		done(nil)
		return a
	}
	done(fresh)
	if journal != nil && len(fresh) > 0 {
		a.err = journal.Keep(fresh)
	}
	if len(taken) > 0 {
		a.err = errors.Join(a.err, journal.(Recaller).Take(taken))
	}
	if a.err == nil {
		a.err = r.graph.Settle(records)
	}
	if r.records != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, rec := range records {
			r.records[rec.Row.Line] = rec
		}
	}
	return a
}

// collect takes the results from records: all, those that the journal does not have, and those
// of another run.
func (r *Run) collect(records []*stage.Record, start time.Time) (a answered, fresh, taken []outcome.Result) {
	for i, rec := range records {
		result, isLeft := r.graph.Result(rec)
		if slices.ContainsFunc(result.Missing, func(f *outcome.Failure) bool { return sdk.CodeOf(f.Err) == sdk.CodeUnavailable }) {
			a.later = append(a.later, rec.Row.Line)
		}
		switch {
		case isLeft:
			a.left = append(a.left, left{i, result.Missing[0]})
			continue
		case rec.From(stage.Taken):
			a.taken++
			taken = append(taken, result)
		case rec.From(stage.Earlier):
			a.earlier++
		default:
			if !rec.From(stage.Machine) { // else it is what the item took there, without waiting for a machine
				result.Latency = time.Since(start)
			}
			fresh = append(fresh, result)
		}
		a.results = append(a.results, result)
	}
	return a, fresh, taken
}

// begin says that those records begin their way that have no answer yet.
func (r *Run) begin(ctx context.Context, records []*stage.Record) (context.Context, func([]outcome.Result)) {
	items := make([]outcome.ObservedItem, 0, len(records))
	for _, rec := range records {
		if rec.Given == nil {
			items = append(items, outcome.ObservedItem{ID: rec.ID(), Trace: rec.Row.Trace})
		}
	}
	if len(items) == 0 {
		return ctx, func([]outcome.Result) {}
	}
	return r.observe.Batch(ctx, r.pipeline.Name, items)
}

// Batch is items that travel together, outside of an input: whoever serves single items makes
// batches of them.
type Batch struct {
	Results []outcome.Result // of each row; of those that are left, nothing
	// Left are the rows, by position, that have no answer because a voter is missing
	// and the others have none; the error is that voter's.
	Left map[int]error
}

// Batch takes rows through the stages, together. Batches may be under way side by side. journal as
// in Items; nil: there is none.
func (r *Run) Batch(ctx context.Context, rows []source.Row, journal Journal) (Batch, error) {
	return r.together(ctx, rows, journal, nil)
}

// Follow is Batch for one row. each is called with what a stage made of it as soon as that is
// done, by several goroutines at once.
func (r *Run) Follow(ctx context.Context, row source.Row, journal Journal, each func(stage.Step)) (Batch, error) {
	return r.together(ctx, []source.Row{row}, journal, each)
}

func (r *Run) together(ctx context.Context, rows []source.Row, journal Journal, each func(stage.Step)) (Batch, error) {
	records := make([]*stage.Record, len(rows))
	for i, row := range rows {
		records[i] = r.graph.NewRecord(row)
		if each != nil {
			records[i].Follow(each)
		}
	}
	a := r.answer(ctx, records, journal)
	if err := ctx.Err(); err != nil {
		return Batch{}, err // it was cut short: failures are not the items'
	}
	if len(a.results)+len(a.left) < len(rows) {
		return Batch{}, a.err // nobody can answer
	}
	b := Batch{Results: make([]outcome.Result, 0, len(rows))}
	for i, left := 0, a.left; i < len(rows); i++ {
		if len(left) > 0 && left[0].at == i {
			if b.Left == nil {
				b.Left = map[int]error{}
			}
			b.Left[i] = cmp.Or(r.graph.Err(), error(left[0].why))
			left = left[1:]
			b.Results = append(b.Results, outcome.Result{})
			continue
		}
		b.Results = append(b.Results, a.results[0])
		a.results = a.results[1:]
	}
	return b, a.err
}

// FoundAll is Found for rows that travel together: what was found for each, or why it failed.
func (r *Run) FoundAll(ctx context.Context, rows []source.Row) (found [][]sdk.Candidate, errs []error) {
	items, results := make([]outcome.ObservedItem, len(rows)), make([]outcome.Result, len(rows))
	for i, row := range rows {
		items[i] = outcome.ObservedItem{ID: r.graph.NewRecord(row).ID(), Trace: row.Trace}
		results[i] = outcome.Result{ID: items[i].ID, Text: row.Text, RetrievalOnly: true}
	}
	ctx, done := r.observe.Batch(ctx, r.pipeline.Name, items)
	found, errs = r.graph.FoundAll(ctx, rows)
	for i, err := range errs {
		if err != nil {
			results[i].Failure = &outcome.Failure{Err: err}
		}
	}
	if ctx.Err() != nil {
		results = nil // they were cut short
	}
	done(results)
	return found, errs
}

// Size is how many items travel together at most, and how many such batches are under way at a
// time.
func (r *Run) Size() (items, batches int) { return r.batch, r.window }

// Asks reports whether a stage of the run asks a service.
func (r *Run) Asks() bool { return stage.Calls(r.pipeline) > 0 }

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
