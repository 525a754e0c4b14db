package run

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/sdk"
)

const (
	// linger is how long a batch waits for more rows after its first one, so
	// that a slow input is answered as it comes.
	linger = 100 * time.Millisecond
	// glance is the same while no other batch is under way: then every moment
	// of waiting is one that the answer comes later.
	glance = 5 * time.Millisecond
)

// Journal keeps results as they are reached, so that a run that ended early can
// be gone on with.
type Journal interface {
	// Answered returns what an earlier part of the run answered to a row; of the
	// result only what the stages made of it.
	Answered(source.Row) (Result, bool)
	// Keep is given results as soon as they are reached, in any order, by several
	// goroutines at once.
	Keep([]Result) error
}

// Items takes all rows that next returns (io.EOF ends them) through the
// pipeline and gives the results to sink in the order of the input, a batch at
// a time, from one goroutine. It ends early when next or sink fails or ctx is
// done; what sink got until then is complete. It ends early, too, when a stage
// says that the run has to (sdk.CodeStopped): what does not need that stage any
// more is then still answered, and the error is that stage's.
func (r *Run) Items(ctx context.Context, next func() (source.Row, error), sink func([]Result) error) (Totals, error) {
	return r.Journalled(ctx, next, nil, sink)
}

// Journalled is Items with a journal: rows that it has an answer to are not
// worked on again, and what the others become is kept in it.
func (r *Run) Journalled(ctx context.Context, next func() (source.Row, error), journal Journal, sink func([]Result) error) (Totals, error) {
	start := time.Now()
	var totals Totals
	g, ctx := errgroup.WithContext(ctx)
	rows := make(chan source.Row)
	readErr := make(chan error, 1)
	var inputErr error // told after everything read before it has been answered
	// This goroutine may be stuck in a read of standard input when everything
	// else has ended, so nothing waits for it.
	go func() { readErr <- read(ctx, next, rows) }()
	queue := make(chan chan answered, r.window)
	under := underway{idle: make(chan struct{}, 1)}
	defer under.all.Wait() // the journal is complete with this call
	g.Go(func() error {
		defer close(queue)
		for {
			records := r.gather(ctx, rows, &under)
			if len(records) == 0 || r.ending.err() != nil {
				break
			}
			done := make(chan answered, 1)
			select {
			case queue <- done:
			case <-ctx.Done():
				return ctx.Err()
			}
			under.begin()
			go func() {
				defer under.end()
				done <- r.journal(ctx, records, journal)
			}()
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if r.ending.err() == nil { // else the reader is not done
			inputErr = <-readErr
		}
		return nil
	})
	g.Go(func() error {
		for done := range queue {
			batch := <-done
			if ctx.Err() != nil {
				return ctx.Err() // the batch was cut short: its failures are not the items'
			}
			if batch.err != nil {
				return batch.err
			}
			for _, result := range batch.results {
				totals.add(result)
			}
			totals.Earlier += batch.earlier
			totals.Left += batch.left
			if err := sink(batch.results); err != nil {
				return err
			}
		}
		return nil
	})
	err := g.Wait()
	if err == nil {
		if err = r.ending.err(); err == nil {
			err = inputErr
		}
	}
	totals.Elapsed = time.Since(start)
	totals.Stages = r.times()
	return totals, err
}

// read sends rows until there are no more, and closes the channel.
func read(ctx context.Context, next func() (source.Row, error), rows chan<- source.Row) error {
	defer close(rows)
	for {
		row, err := next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case rows <- row:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// underway counts the batches that are being answered.
type underway struct {
	all     sync.WaitGroup
	batches atomic.Int64
	idle    chan struct{} // told when there are none any more; it may be late
}

func (u *underway) begin() {
	u.all.Add(1)
	u.batches.Add(1)
}

func (u *underway) end() {
	defer u.all.Done()
	if u.batches.Add(-1) == 0 {
		select {
		case u.idle <- struct{}{}:
		default: // it has been told and not heard yet
		}
	}
}

// patience is how long a batch waits for more rows.
func (u *underway) patience() <-chan time.Time {
	if u.batches.Load() == 0 {
		return time.After(glance)
	}
	return time.After(linger)
}

// gather makes a batch of the rows that are there or come soon; none at the
// end.
func (r *Run) gather(ctx context.Context, rows <-chan source.Row, under *underway) []*record {
	var records []*record
	var late <-chan time.Time
	for len(records) < r.batch {
		select {
		case row, ok := <-rows:
			if !ok {
				return records
			}
			rec := &record{row: row, id: row.ID, outputs: make([]output, len(r.stages))}
			if rec.id == "" {
				rec.id = strconv.Itoa(row.Line)
			}
			records = append(records, rec)
			if late == nil {
				late = under.patience()
			}
		case <-under.idle:
			if late != nil && under.batches.Load() == 0 {
				late = time.After(glance)
			}
		case <-late:
			return records
		case <-r.ending.begun:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
	return records
}

// answered is what became of a batch.
type answered struct {
	results       []Result // without those that are left
	earlier, left int
	err           error
}

// journal answers those records that the journal has no answer to, and gives it
// the results.
func (r *Run) journal(ctx context.Context, records []*record, journal Journal) answered {
	if journal == nil {
		return r.sorted(r.answer(ctx, records))
	}
	for _, rec := range records {
		if rec.row.Fault != nil {
			continue
		}
		if result, ok := journal.Answered(rec.row); ok {
			rec.earlier = &result
		}
	}
	batch := r.sorted(r.answer(ctx, records))
	if ctx.Err() != nil {
		return batch // it was cut short
	}
	fresh := batch.results
	if batch.earlier > 0 {
		fresh = nil
		for _, result := range batch.results {
			if !result.earlier {
				fresh = append(fresh, result)
			}
		}
	}
	if len(fresh) > 0 {
		batch.err = journal.Keep(fresh)
	}
	return batch
}

// sorted tells apart what an earlier part of the run answered and what is left
// for a later one.
func (r *Run) sorted(results []Result) answered {
	a := answered{results: results}
	for _, result := range results {
		if result.earlier {
			a.earlier++
		}
		if result.left {
			a.left++
		}
	}
	if a.left > 0 {
		a.results = slices.DeleteFunc(results, func(result Result) bool { return result.left })
	}
	return a
}

// answer takes records through all stages, each as soon as those that it needs
// are done.
func (r *Run) answer(ctx context.Context, records []*record) []Result {
	start := time.Now()
	var good []*record
	for _, rec := range records {
		if rec.row.Fault == nil && rec.earlier == nil {
			good = append(good, rec)
		}
	}
	done := make([]chan struct{}, len(r.stages))
	for i := range done {
		done[i] = make(chan struct{})
	}
	var wg sync.WaitGroup
	for i, s := range r.stages {
		if s == nil {
			close(done[i])
			continue
		}
		wg.Go(func() {
			defer close(done[i])
			for _, n := range s.in.needs {
				<-done[n]
			}
			if r.again && i == r.elect {
				r.keepBallots(good)
			}
			s.step(ctx, good)
		})
	}
	wg.Wait()
	results := make([]Result, len(records))
	for i, rec := range records {
		results[i] = r.result(rec)
		if rec.earlier == nil {
			results[i].Latency = time.Since(start)
		}
	}
	return results
}

func (r *Run) result(rec *record) Result {
	result := Result{
		Line: rec.row.Line, ID: rec.id, Text: rec.row.Text, Expected: rec.row.Label,
		Answer: rec.verdict.Answer, Agreement: rec.verdict.Agreement, Reason: rec.verdict.Reason, Flagged: rec.flagged,
		RetrievalOnly: r.elect < 0,
	}
	if r.again {
		result.record = rec
	}
	if rec.row.Fault != nil {
		result.Failure = &Failure{Err: rec.row.Fault}
		return result
	}
	if e := rec.earlier; e != nil {
		result.Answer, result.Agreement, result.Reason, result.Flagged = e.Answer, e.Agreement, e.Reason, e.Flagged
		result.Votes, result.Candidates, result.Usage = e.Votes, e.Candidates, e.Usage
		result.earlier = true
		return result
	}
	for i := range rec.outputs {
		if f := rec.outputs[i].failure; f.stops() {
			result.left = true
		} else if f != nil && result.Failure == nil {
			result.Failure = f
		}
	}
	if r.elect >= 0 && result.Failure == nil && result.Answer == "" && result.Reason == "" {
		result.Reason = "no election was held: its when rule does not hold"
	}
	samples := rec.samples(r.voters)
	result.Votes = votes(samples)
	for _, s := range samples {
		result.Usage.Add(s.Usage)
		if s.Usage != (sdk.Usage{}) {
			if result.Usages == nil {
				result.Usages = map[string]sdk.Usage{}
			}
			of := result.Usages[s.Voter]
			of.Add(s.Usage)
			result.Usages[s.Voter] = of
		}
	}
	if r.retrieve >= 0 {
		result.Candidates = rec.outputs[r.retrieve].candidates
	}
	return result
}
