package run

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/stage"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
)

// Batch is the outcome of items that travel together but belong to no input: a server combines
// single items into batches.
type Batch struct {
	Results []outcome.Result // of each row; empty for a row that is left unanswered
	// Left has the rows without an answer, by position: a voter is missing, and the other voters
	// have no answer. The error is the missing voter's.
	Left map[int]error
}

// Journal keeps results as soon as they are known, so that a run that ended early can be resumed.
type Journal interface {
	// Answered returns the answer to a row from an earlier part of the run. The result has only the
	// parts that stages made.
	Answered(source.Row) (outcome.Result, bool)
	// Keep stores results. Several goroutines call it at once, in any order of the results.
	Keep([]outcome.Result) error
}

// answered is the outcome of a batch.
type answered struct {
	results []outcome.Result // without items that are left unanswered
	left    []left           // items that are left
	later   []int            // lines of items, unanswered or not, whose service was unavailable
	earlier int
	err     error
}

// left is an item without an answer, by its position in the batch, with the cause.
type left struct {
	at  int
	why *outcome.Failure
}

// answer answers a batch, and keeps new results in the journal.
func (r *Run) answer(ctx context.Context, records []*stage.Record, journal Journal) answered {
	start := time.Now()
	r.earlier(journal, records...)
	ctx, done := r.begin(ctx, records)
	r.reviewed(records...)
	r.graph.Run(ctx, records)
	a, fresh := r.collect(records, start)
	if ctx.Err() != nil { // the batch was cut short: its failures are not due to its items
		done(nil)
		return a
	}
	done(fresh)
	if journal != nil && len(fresh) > 0 {
		a.err = journal.Keep(fresh)
	}
	if a.err == nil {
		a.err = r.graph.Settle(a.results)
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

// collect gets all results from records, and separately the results that are new to the journal
// (fresh).
func (r *Run) collect(records []*stage.Record, start time.Time) (a answered, fresh []outcome.Result) {
	for i, rec := range records {
		result, isLeft := r.graph.Result(rec)
		if slices.ContainsFunc(result.Missing, func(f *outcome.Failure) bool { return sdk.CodeOf(f.Err) == sdk.CodeUnavailable }) {
			a.later = append(a.later, rec.Row.Line)
		}
		switch {
		case isLeft:
			a.left = append(a.left, left{i, result.Missing[0]})
			continue
		case rec.From(stage.Earlier):
			a.earlier++
		default:
			result.Latency = time.Since(start)
			fresh = append(fresh, result)
		}
		a.results = append(a.results, result)
	}
	return a, fresh
}

// begin reports the records that have no answer yet as a new batch.
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

// Batch takes rows through the stages together. It may run several times at once. journal is used
// as in Items; nil: there is none.
func (r *Run) Batch(ctx context.Context, rows []source.Row, journal Journal) (Batch, error) {
	return r.together(ctx, rows, journal, nil)
}

// Follow is Batch for one row. It calls each with every stage's output immediately, from several
// goroutines at once.
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
		return Batch{}, err // the batch was cut short: its failures are not due to its items
	}
	if len(a.results)+len(a.left) < len(rows) {
		return Batch{}, a.err // no row can be answered
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

// FoundAll is Found for rows that travel together. It returns the candidates or the error of each
// row.
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
		results = nil // the batch was cut short
	}
	done(results)
	return found, errs
}

// Size returns the maximum number of items in a batch, and the number of batches in work at a time.
func (r *Run) Size() (items, batches int) { return r.batch, r.window }

// Asks reports whether a stage of the run calls a service.
func (r *Run) Asks() bool { return stage.Calls(r.pipeline) > 0 }

const (
	// batchSize is the default number of items that travel together.
	batchSize = 64
	// networkBatchSize is the default if a stage asks other machines: a paid answer then does not
	// wait for many others.
	networkBatchSize = 8
)

const (
	// ahead is how many items are in work for each concurrent call of a network stage. Most of them
	// wait. If a rule sends a fifth of the items to the service, each call needs five items. While
	// the first item waits for a retry, the answers of the other items wait for it.
	ahead    = 32
	minAhead = 256  // for a service that takes few calls
	maxAhead = 8192 // items in work are kept in memory
)

// measure sets how many items travel together and how many batches are in work.
func (r *Run) measure() {
	r.batch, r.window = r.pipeline.Batch, stage.Window
	calls := stage.Calls(r.pipeline)
	r.gathers = stage.Gathers(r.pipeline)
	switch {
	case r.batch > 0:
	case r.gathers:
		r.batch, r.window = stage.Gathered, 0 // one batch at a time: it waits for hours, and is kept in memory
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
