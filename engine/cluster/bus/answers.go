package bus

import (
	"context"
	"fmt"
)

// Answered reads what a service answered: nil where nothing is kept.
func (r *Run) Answered(ctx context.Context, key string) ([]byte, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	m, err := r.c.last(ctx, answersStream(r.id), answerSubject(r.id, key))
	if err != nil {
		return nil, fmt.Errorf("read answer %s: %w", key, err)
	}
	if m == nil {
		return nil, nil
	}
	value, err := r.unpack(ctx, m.Header, m.Data)
	if err != nil {
		return nil, fmt.Errorf("read answer %s: %w", key, err)
	}
	return notNil(value), nil
}

// KeepAnswer keeps what a service answered and returns when it is stored; until then it waits. The first answer of a key stands for
// the life of the run; it returns what stands.
func (r *Run) KeepAnswer(ctx context.Context, key string, value []byte) (stands []byte, err error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	m, err := r.pack(ctx, answerSubject(r.id, key), value)
	if err != nil {
		return nil, fmt.Errorf("keep answer %s: %w", key, err)
	}
	mine, err := r.c.once(ctx, answersStream(r.id), m)
	switch {
	case err != nil:
		return nil, fmt.Errorf("keep answer %s: %w", key, err)
	case mine:
		return notNil(value), nil
	}
	return r.Answered(ctx, key)
}
