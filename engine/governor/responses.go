package governor

import (
	"context"

	"github.com/racflow/racflow/sdk"
)

// Responses keep what services answered. *cache.Cache does so in a folder.
type Responses interface {
	// Get returns what is kept under a key.
	Get(key sdk.Key) (value []byte, ok bool)
	// Add keeps a value of at most sdk.MaxCached bytes under a key. Of those that ask the same at
	// the same time the first one's value stays. About says in a few words what it is. When it has returned, the value
	// survives the end of every process.
	Add(key sdk.Key, about string, value []byte) error
	// Put is Add in the place of what was kept before.
	Put(key sdk.Key, about string, value []byte) error
}

// Shared are Responses that several machines keep together: a look there takes as long as a message
// to another machine, and what the others have kept in this run counts as if this process had.
type Shared interface {
	Responses
	// GetAll returns what is kept under each key; nil where there is nothing. With fresh only what
	// this run has kept counts.
	GetAll(ctx context.Context, keys []sdk.Key, fresh bool) ([][]byte, error)
}

// look returns what is kept under each of a stage's keys.
func (h *host) look(ctx context.Context, keys []sdk.Key) ([][]byte, error) {
	o := h.governor.options
	if shared, ok := o.Cache.(Shared); ok {
		return shared.GetAll(ctx, keys, o.Mode == Refresh)
	}
	values := make([][]byte, len(keys))
	for i, key := range keys {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if o.Mode == Refresh && !h.putHere(key) {
			continue
		}
		if value, ok := o.Cache.Get(key); ok {
			values[i] = value
		}
	}
	return values, nil
}
