package run

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

func (r *record) fail(s *stage, err error) {
	r.outputs[s.index].failure = &Failure{Stage: s.String(), Err: err}
}

// step takes the records of a batch through one stage: when, the call, keep or
// accept, fallback, on_error.
func (s *stage) step(ctx context.Context, records []*record) {
	records = s.wanted(ctx, records)
	if len(records) == 0 {
		return
	}
	if s.Block == "elect" {
		// The election's own accept rule narrows what counts further.
		for _, rec := range records {
			if err := s.narrow(ctx, rec); err != nil {
				rec.fail(s, err)
			}
		}
		records = slices.DeleteFunc(records, func(rec *record) bool { return rec.outputs[s.index].failure != nil })
	}
	s.attempt(ctx, records)
	s.fallBack(ctx, records)
	if s.OnError == pipeline.SkipItem {
		for _, rec := range records {
			if rec.outputs[s.index].failure != nil {
				rec.outputs[s.index] = output{}
			}
		}
	}
}

// attempt calls the stage and applies what follows the call.
func (s *stage) attempt(ctx context.Context, records []*record) {
	for i, err := range s.call(ctx, records) {
		rec := records[i]
		if err == nil {
			err = s.settle(ctx, rec)
		}
		if err != nil {
			rec.fail(s, err)
		}
	}
}

// settle applies the rules that look at what a stage wrote.
func (s *stage) settle(ctx context.Context, rec *record) error {
	switch s.Block {
	case "retrieve":
		return s.keep(ctx, rec)
	case "sample":
		return s.accept(ctx, rec, rec.outputs[s.index].samples)
	case "elect":
		return s.flag(ctx, rec)
	}
	return nil
}

// narrow applies an election's accept rule to the answers that the voters'
// own rules accepted.
func (s *stage) narrow(ctx context.Context, rec *record) error {
	if s.Accept == nil {
		return nil
	}
	var rejected []*sdk.Answer
	samples := rec.samples(s.in.voters)
	for _, sample := range samples {
		for i := range sample.Answers {
			if !sample.Answers[i].Accepted {
				rejected = append(rejected, &sample.Answers[i])
			}
		}
	}
	err := s.accept(ctx, rec, samples)
	for _, a := range rejected {
		a.Accepted = false
	}
	return err
}

// fallBack lets the first fallback whose rule holds take over an item that
// failed or was left without candidates.
func (s *stage) fallBack(ctx context.Context, records []*record) {
	if len(s.fallbacks) == 0 {
		return
	}
	taken := make([][]*record, len(s.fallbacks))
	for _, rec := range records {
		out := &rec.outputs[s.index]
		for i, f := range s.fallbacks {
			when := s.Fallbacks[i].When
			e := f.env(rec, when)
			if e.Failed = out.failure != nil; e.Failed {
				e.Error = out.failure.Err.Error()
			}
			ok, err := when.Eval(ctx, e)
			if err != nil {
				rec.fail(s, err)
				break
			}
			if ok {
				taken[i] = append(taken[i], rec)
				break
			}
		}
	}
	for i, f := range s.fallbacks {
		for _, rec := range taken[i] {
			rec.outputs[s.index] = output{}
		}
		f.attempt(ctx, taken[i])
	}
}

// call does the stage's work in batches of its size, a few at a time. It
// returns an error or nil for each record.
func (s *stage) call(ctx context.Context, records []*record) []error {
	errs := make([]error, len(records))
	size := s.Batch
	if size == 0 {
		size = s.Info.Batch
	}
	if size == 0 {
		size = max(len(records), 1)
	}
	var g errgroup.Group
	g.SetLimit(max(s.Workers, 1))
	for from := 0; from < len(records); from += size {
		to := min(from+size, len(records))
		g.Go(func() error {
			s.callWithRetries(ctx, records[from:to], errs[from:to])
			return nil
		})
	}
	_ = g.Wait() // its functions return nil: every error is a record's
	return errs
}

// callWithRetries calls once and then again with the records that failed in a
// way that may pass.
func (s *stage) callWithRetries(ctx context.Context, records []*record, errs []error) {
	at := make([]int, len(records)) // positions of those still to do
	for i := range at {
		at[i] = i
	}
	for attempt := 0; len(at) > 0; attempt++ {
		todo := make([]*record, len(at))
		for i, n := range at {
			todo[i] = records[n]
		}
		err := s.callOnce(ctx, todo)
		var rows sdk.RowErrors
		perRow := errors.As(err, &rows)
		var again []int
		var wait time.Duration
		for i, n := range at {
			if errs[n] = err; perRow {
				errs[n] = rows[i]
			}
			var coded *sdk.Error
			if errors.As(errs[n], &coded) && coded.Code == sdk.CodeTransient {
				again = append(again, n)
				wait = max(wait, coded.RetryAfter)
			}
		}
		if at = again; len(at) == 0 || attempt >= s.Retries || !sleep(ctx, max(wait, backOff(attempt))) {
			return
		}
	}
}

func (s *stage) callOnce(ctx context.Context, records []*record) error {
	if s.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.Timeout)
		defer cancel()
	}
	start := time.Now()
	err := s.work(ctx, records)
	s.busy.Add(int64(time.Since(start)))
	s.rows.Add(int64(len(records)))
	return err
}

// backOff is the time to wait after a failed attempt: exponential with full
// jitter, so that many items that failed together do not come back together.
func backOff(attempt int) time.Duration {
	ceiling := 200 * time.Millisecond << min(attempt, 7)
	return time.Duration(rand.Int64N(int64(ceiling)))
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
