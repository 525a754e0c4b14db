package bus

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/nats-io/nats.go/jetstream"
)

// Result is the answer of a batch.
type Result struct {
	Position
	Data     []byte
	Sequence uint64 // in the order of storage: growing, with gaps
	Worker   string // Options.Name of the process that answered
}

// Answer stores the answer of a batch and returns when it is stored; until then it waits. The first answer of a position stands for
// the life of the run: first is false, without an error, where this is a later one, which is dropped.
func (r *Run) Answer(ctx context.Context, at Position, data []byte) (first bool, err error) {
	if len(data) > r.c.room() { // pieces of an answer that does not count would lie at the servers for nothing
		m, err := r.c.last(ctx, resultsStream(r.id), resultSubject(r.id, at))
		if m != nil || err != nil {
			return false, err
		}
	}
	m, err := r.pack(ctx, resultSubject(r.id, at), data)
	if err == nil {
		m.Header.Set(headerWorker, r.c.name)
		first, err = r.c.once(ctx, resultsStream(r.id), m)
	}
	if err != nil {
		return false, fmt.Errorf("answer batch %s: %w", at, err)
	}
	return first, nil
}

func (r *Run) answered(ctx context.Context, at Position) (bool, error) {
	s, err := r.c.stream(ctx, resultsStream(r.id))
	if err != nil {
		return false, err
	}
	if _, err = s.GetLastMsgForSubject(ctx, resultSubject(r.id, at)); errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Results gives the answers stored after a sequence (0: all), each once, in the order of storage, and waits for more until ctx ends,
// which ends it without an error. Any other error is the last of it. ErrNoRun: the run was removed.
func (r *Run) Results(ctx context.Context, after uint64) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		for m, err := range r.c.tail(ctx, resultsStream(r.id), subject(r.id, "results", ">"), after) {
			result := Result{Sequence: m.sequence}
			if err == nil {
				result.Position, err = positionOf(m.subject)
			}
			if err == nil {
				result.Worker = m.header.Get(headerWorker)
				result.Data, err = r.unpack(ctx, m.header, m.data)
			}
			if err != nil {
				if ctx.Err() == nil {
					yield(Result{}, fmt.Errorf("results: %w", err))
				}
				return
			}
			if !yield(result, nil) {
				return
			}
		}
	}
}

// Stored is the sequence of the last result, 0 where there is none.
func (r *Run) Stored(ctx context.Context) (uint64, error) {
	m, err := r.c.last(ctx, resultsStream(r.id), subject(r.id, "results", ">"))
	if m == nil || err != nil {
		return 0, err
	}
	return m.Sequence, nil
}
