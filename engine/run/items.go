package run

import (
	"context"
	"errors"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/engine/source"
)

const (
	// batchSize is how many items travel together where the file does not say.
	batchSize = 64
	// networkBatchSize is the same where a stage asks other machines: an answer
	// that was paid for is then not kept waiting for many others.
	networkBatchSize = 8
)

// window is how many batches are under way at a time: enough to keep every
// stage busy while the slowest one works on another batch.
const window = 4

const (
	// linger is how long a batch waits for more rows after its first one, so
	// that a slow input is answered as it comes.
	linger = 100 * time.Millisecond
	// glance is the same while no other batch is under way: then every moment
	// of waiting is one that the answer comes later.
	glance = 5 * time.Millisecond
)

// Items takes all rows that next returns (io.EOF ends them) through the
// pipeline and gives the results to sink in the order of the input, a batch at
// a time, from one goroutine. It ends early when next or sink fails or ctx is
// done; what sink got until then is complete.
func (r *Run) Items(ctx context.Context, next func() (source.Row, error), sink func([]Result) error) (Totals, error) {
	start := time.Now()
	var totals Totals
	g, ctx := errgroup.WithContext(ctx)
	rows := make(chan source.Row)
	readErr := make(chan error, 1)
	var inputErr error // told after everything read before it has been answered
	// This goroutine may be stuck in a read of standard input when everything
	// else has ended, so nothing waits for it.
	go func() { readErr <- read(ctx, next, rows) }()
	queue := make(chan chan []Result, window)
	under := underway{idle: make(chan struct{}, 1)}
	g.Go(func() error {
		defer close(queue)
		for {
			records := r.gather(ctx, rows, &under)
			if len(records) == 0 {
				break
			}
			done := make(chan []Result, 1)
			select {
			case queue <- done:
			case <-ctx.Done():
				return ctx.Err()
			}
			under.begin()
			go func() {
				done <- r.answer(ctx, records)
				under.end()
			}()
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		inputErr = <-readErr
		return nil
	})
	g.Go(func() error {
		for done := range queue {
			results := <-done
			if ctx.Err() != nil {
				return ctx.Err() // the batch was cut short: its failures are not the items'
			}
			for _, result := range results {
				totals.add(result)
			}
			if err := sink(results); err != nil {
				return err
			}
		}
		return nil
	})
	err := g.Wait()
	if err == nil {
		err = inputErr
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
	batches atomic.Int64
	idle    chan struct{} // told when there are none any more; it may be late
}

func (u *underway) begin() { u.batches.Add(1) }

func (u *underway) end() {
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
		case <-ctx.Done():
			return nil
		}
	}
	return records
}

// answer takes records through all stages, each as soon as those that it needs
// are done.
func (r *Run) answer(ctx context.Context, records []*record) []Result {
	start := time.Now()
	var good []*record
	for _, rec := range records {
		if rec.row.Fault == nil {
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
			s.step(ctx, good)
		})
	}
	wg.Wait()
	results := make([]Result, len(records))
	for i, rec := range records {
		results[i] = r.result(rec)
		results[i].Latency = time.Since(start)
	}
	return results
}

func (r *Run) result(rec *record) Result {
	result := Result{
		Line: rec.row.Line, ID: rec.id, Text: rec.row.Text, Expected: rec.row.Label,
		Answer: rec.verdict.Answer, Agreement: rec.verdict.Agreement, Reason: rec.verdict.Reason, Flagged: rec.flagged,
		RetrievalOnly: r.elect < 0,
	}
	if rec.row.Fault != nil {
		result.Failure = &Failure{Err: rec.row.Fault}
		return result
	}
	for i := range rec.outputs {
		if f := rec.outputs[i].failure; f != nil && result.Failure == nil {
			result.Failure = f
		}
	}
	if r.elect >= 0 && result.Failure == nil && result.Answer == "" && result.Reason == "" {
		result.Reason = "no election was held: its when rule does not hold"
	}
	samples := rec.samples(r.voters)
	result.Votes = votes(samples)
	for _, s := range samples {
		result.Usage.InputTokens += s.Usage.InputTokens
		result.Usage.OutputTokens += s.Usage.OutputTokens
	}
	if r.retrieve >= 0 {
		result.Candidates = rec.outputs[r.retrieve].candidates
	}
	return result
}
