package live

import (
	"context"
	"sync"

	"github.com/racflow/racflow/engine/run"
	"github.com/racflow/racflow/engine/source"
)

// room is how many requests travel together at most, and how many batches are under way at a
// time. Where a stage asks a service each item travels alone: it would wait for the slowest answer
// of its batch.
func (v *version) room() (requests, batches int) {
	items, batches := v.run.Size()
	if v.run.Asks() {
		return 1, items * max(batches, 1)
	}
	return items, batches
}

// work takes a batch through the stages, and sets what became of each request.
func (v *version) work(ctx context.Context, b *batch) {
	rows := make([]source.Row, len(b.requests))
	for i, r := range b.requests {
		rows[i] = r.row
	}
	var done run.Batch
	var err error
	switch first := b.requests[0]; first.kind {
	case finds:
		found, errs := v.run.FoundAll(ctx, rows)
		for i, r := range b.requests {
			r.found, r.err = found[i], errs[i]
		}
		return
	case follows:
		done, err = v.run.Follow(ctx, rows[0], v.Counting(), first.follow)
	default:
		done, err = v.run.Batch(ctx, rows, v.Counting())
	}
	for i, r := range b.requests {
		if r.err = err; err == nil {
			r.result, r.err = done.Results[i], done.Left[i]
		}
	}
}

// failed reports whether the stages have failed on one of a batch's requests.
func (b *batch) failed() bool {
	for _, r := range b.requests {
		if r.row.Err == nil && (r.err != nil || r.result.Failure != nil || len(r.result.Missing) > 0) {
			return true
		}
	}
	return false
}

// stream hands on values from several goroutines to one.
type stream[T any] struct {
	mu    sync.Mutex
	some  []T
	there chan struct{} // has a value where some are
}

func newStream[T any]() *stream[T] { return &stream[T]{there: make(chan struct{}, 1)} }

func (s *stream[T]) add(v T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.some = append(s.some, v)
	select {
	case s.there <- struct{}{}:
	default:
	}
}

func (s *stream[T]) take() []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	some := s.some
	s.some = nil
	return some
}
