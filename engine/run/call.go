package run

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/engine/retry"
)

// call does the stage's work in batches of its size, a few at a time. It
// returns an error or nil for each record.
func (s *stage) call(ctx context.Context, records []*record) []error {
	errs := make([]error, len(records))
	size := s.Batch
	if size == 0 && s.whole != nil {
		size = 1 // each record may bring all of the knowledge
	}
	if size == 0 {
		size = s.Info.Batch
	}
	if size == 0 {
		size = max(len(records), 1)
	}
	var g errgroup.Group
	if !s.Info.Network { // there its slots are the limit
		g.SetLimit(max(s.Workers, 1))
	}
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
	w := retry.Work{
		Retries: s.Retries, Ended: s.ending.begun, Cause: s.ending.err,
		Call: func(ctx context.Context, at []int) error {
			some := make([]*record, len(at))
			for i, n := range at {
				some[i] = records[n]
			}
			return s.callOnce(ctx, some)
		},
	}
	copy(errs, w.Do(ctx, len(records)))
}

func (s *stage) callOnce(ctx context.Context, records []*record) error {
	if s.slots != nil { // before the time of the call begins
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if s.stopped.Load() && (s.run.refuses == nil || !s.run.refuses(s.Stage)) {
		return s.ending.err()
	}
	start := time.Now()
	err := retry.Bounded(ctx, s.Stage, func(ctx context.Context) error { return s.work(ctx, records) })
	if cause := stopOf(err); cause != nil {
		s.run.stop(s, cause)
	}
	s.busy.Add(int64(time.Since(start)))
	s.rows.Add(int64(len(records)))
	return err
}
