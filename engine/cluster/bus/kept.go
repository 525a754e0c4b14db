package bus

import (
	"context"
	"fmt"
	"iter"
	"strings"
)

// Answer is what a service answered, as KeepAnswer kept it.
type Answer struct {
	Key      string
	Value    []byte
	Sequence uint64 // in the order of storage: growing
}

// Answers gives the answers of services that were kept after a sequence (0: all), each once, in the order of storage, and waits for more
// until ctx ends, which ends it without an error. Any other error is the last of it. ErrNoRun: the run was removed.
func (r *Run) Answers(ctx context.Context, after uint64) iter.Seq2[Answer, error] {
	return func(yield func(Answer, error) bool) {
		below := strings.TrimSuffix(answerSubject(r.id, ">"), ">")
		for m, err := range r.c.tail(ctx, answersStream(r.id), below+">", after) {
			a := Answer{Key: strings.TrimPrefix(m.subject, below), Sequence: m.sequence}
			if err == nil {
				a.Value, err = r.unpack(ctx, m.header, m.data)
			}
			if err != nil {
				if ctx.Err() == nil {
					yield(Answer{}, fmt.Errorf("answers of services: %w", err))
				}
				return
			}
			if !yield(a, nil) {
				return
			}
		}
	}
}

// LastAnswer is the sequence of the answer of a service that was kept last, 0 where there is none.
func (r *Run) LastAnswer(ctx context.Context) (uint64, error) {
	m, err := r.c.last(ctx, answersStream(r.id), answerSubject(r.id, ">"))
	if m == nil || err != nil {
		return 0, err
	}
	return m.Sequence, nil
}
