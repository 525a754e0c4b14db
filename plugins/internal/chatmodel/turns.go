package chatmodel

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/racflow/racflow/sdk"
)

// Turn waits until nobody works on any of the keys, and has them until leave is
// called: who asks the same at the same time finds what the first one kept.
func (m *Model) Turn(ctx context.Context, keys ...sdk.Key) (leave func(), err error) {
	return m.turns.take(ctx, keys)
}

// turns lets those who work on the same wait for each other.
type turns struct {
	mu    sync.Mutex
	taken map[sdk.Key]chan struct{} // closed when it is free again
}

// take waits until nobody has any of the keys.
func (t *turns) take(ctx context.Context, keys []sdk.Key) (leave func(), err error) {
	keys = slices.Clone(keys)
	// All in one order, so that nobody waits for one who waits for him.
	slices.SortFunc(keys, func(a, b sdk.Key) int { return bytes.Compare(a[:], b[:]) })
	keys = slices.Compact(keys)
	for i, key := range keys {
		if err := t.takeOne(ctx, key); err != nil {
			t.leave(keys[:i])
			return nil, err
		}
	}
	return func() { t.leave(keys) }, nil
}

func (t *turns) takeOne(ctx context.Context, key sdk.Key) error {
	for {
		t.mu.Lock()
		busy, ok := t.taken[key]
		if !ok {
			t.taken[key] = make(chan struct{})
			t.mu.Unlock()
			return nil
		}
		t.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (t *turns) leave(keys []sdk.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, key := range keys {
		close(t.taken[key])
		delete(t.taken, key)
	}
}
