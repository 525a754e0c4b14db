package run

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/sdk"
)

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

// maxWait is the longest that a stage may ask to be left alone. Items that
// would have to wait longer fail, and say so. For as long it may ask again and
// again: that an item has to wait its turn is no failure of its own.
const maxWait = 2 * time.Minute

// callWithRetries calls once and then again with the records that failed in a
// way that may pass.
func (s *stage) callWithRetries(ctx context.Context, records []*record, errs []error) {
	at := make([]int, len(records)) // positions of those still to do
	for i := range at {
		at[i] = i
	}
	start, failed := time.Now(), make([]int, len(records)) // how often
	for len(at) > 0 {
		todo := make([]*record, len(at))
		for i, n := range at {
			todo[i] = records[n]
		}
		results := s.callApart(ctx, todo)
		var again []int
		var wait time.Duration
		most := 1
		for i, n := range at {
			errs[n] = results[i]
			var coded *sdk.Error
			if !errors.As(errs[n], &coded) || coded.Code != sdk.CodeTransient {
				continue
			}
			if coded.RetryAfter > maxWait {
				errs[n] = fmt.Errorf("%w; it asks to wait %s, longer than a run waits", errs[n], coded.RetryAfter)
				continue
			}
			if coded.RetryAfter == 0 || time.Since(start) >= maxWait {
				failed[n]++
			}
			if s.Retries == 0 || failed[n] > s.Retries {
				continue
			}
			again = append(again, n)
			wait, most = max(wait, coded.RetryAfter), max(most, failed[n])
		}
		if at = again; len(at) == 0 {
			return
		}
		// The jitter comes on top: all that were sent away together are told the
		// same time to wait.
		if !s.sleep(ctx, wait+backOff(most-1)) {
			for _, n := range at {
				if err := s.ending.err(); err != nil {
					errs[n] = err
				}
			}
			return
		}
	}
}

// callApart calls with a batch and, where it fails as a whole for a reason
// that may lie in one of its items, or in its size, with each half. A batch
// that ends the process or runs out of time is not tried again in parts: that
// would cost as many processes, or as much time.
func (s *stage) callApart(ctx context.Context, records []*record) []error {
	err := s.callOnce(ctx, records)
	errs := make([]error, len(records))
	var rows sdk.RowErrors
	if errors.As(err, &rows) {
		for i := range errs {
			errs[i] = rows[i]
		}
		return errs
	}
	code := sdk.CodeOf(err)
	if err != nil && len(records) > 1 && ctx.Err() == nil && !errors.Is(err, sdk.ErrCrashed) &&
		(code == sdk.CodeInternal || code == sdk.CodeInvalid) {
		half := len(records) / 2
		return append(s.callApart(ctx, records[:half]), s.callApart(ctx, records[half:])...)
	}
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// defaultTimeout bounds a call of a stage that sets no timeout, so that one
// that hangs does not hold up the run for ever. A stage that asks other machines
// has longer: it waits for its limit within the call, and has a timeout of its
// own for each request.
const (
	defaultTimeout = 10 * time.Minute
	networkTimeout = time.Hour
)

func (s *stage) callOnce(ctx context.Context, records []*record) error {
	if s.slots != nil { // before the time of the call begins
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	timeout := s.Timeout
	switch {
	case timeout > 0:
	case s.Info.Network:
		timeout = networkTimeout
	default:
		timeout = defaultTimeout
	}
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	start := time.Now()
	err := s.work(within, records)
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		err = &sdk.Error{Code: sdk.CodeDeadline, Err: fmt.Errorf("no answer within %s; timeout = \"...\" sets another limit", timeout)}
	}
	s.ending.begin(err)
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

// sleep waits, unless the run ends before.
func (s *stage) sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-s.ending.begun:
	}
	return false
}
