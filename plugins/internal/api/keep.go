package api

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/sdk"
)

// recalled is how many values are asked for at a time, since they come in one
// message: of vectors of 4,096 numbers 8 MiB.
const recalled = 512

// CacheGet returns what was put under each key; nil where there is nothing.
func (c *Client) CacheGet(ctx context.Context, keys []sdk.Key) ([][]byte, error) {
	all := make([][]byte, len(keys))
	for from := 0; from < len(keys); from += recalled {
		to := min(from+recalled, len(keys))
		found, err := c.config.Host.CacheGet(ctx, keys[from:to])
		if err != nil {
			return nil, err
		}
		copy(all[from:to], found)
	}
	return all, nil
}

// keeping is how many values are kept at a time.
const keeping = 64

// CachePut stores answers under keys, but for those that are nil. Where that fails
// they count all the same, and the log says so once.
func (c *Client) CachePut(ctx context.Context, keys []sdk.Key, answers [][]byte) {
	var calls errgroup.Group
	calls.SetLimit(keeping)
	for i, answer := range answers {
		if answer != nil {
			calls.Go(func() error { return c.config.Host.CachePut(ctx, keys[i], answer) })
		}
	}
	if err := calls.Wait(); err != nil && ctx.Err() == nil {
		c.Once("keep", "answers cannot be kept: they will be asked for again", "error", err)
	}
}

// Once logs a warning of which people need to hear only the first time.
func (c *Client) Once(topic, message string, args ...any) {
	if _, told := c.said.LoadOrStore(topic, true); !told && c.config.Log != nil {
		c.config.Log.Warn(message, args...)
	}
}
