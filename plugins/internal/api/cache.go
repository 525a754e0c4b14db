package api

import (
	"context"
	"encoding/json"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/sdk"
)

const (
	maxGets = 512 // keys in one call of the host, whose answer is one message: 8 MiB for vectors of 4,096 numbers
	maxPuts = 64  // values that are stored at a time
)

// CacheGet returns what was put under each key; nil where there is nothing.
func (c *Client) CacheGet(ctx context.Context, keys []sdk.Key) ([][]byte, error) {
	all := make([][]byte, 0, len(keys))
	for some := range slices.Chunk(keys, maxGets) {
		found, err := c.config.Host.CacheGet(ctx, some)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	if by := courierOf(ctx); by != nil {
		for i, key := range keys {
			if all[i] != nil && by.Forgets(key) {
				all[i] = nil
			}
		}
	}
	return all, nil
}

// CachePut stores values under keys and skips those that are nil. A value that cannot
// be stored is an answer all the same: a warning is logged, once.
func (c *Client) CachePut(ctx context.Context, keys []sdk.Key, values [][]byte) {
	var calls errgroup.Group
	calls.SetLimit(maxPuts)
	for i, value := range values {
		if value != nil {
			calls.Go(func() error { return c.config.Host.CachePut(ctx, keys[i], value) })
		}
	}
	if err := calls.Wait(); err != nil && ctx.Err() == nil {
		c.WarnOnce("cache", "answers cannot be cached and will be asked for again", "error", err)
	}
}

// Value is a value for CachePut: the JSON of v, which holds texts and finite numbers.
func Value(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}
