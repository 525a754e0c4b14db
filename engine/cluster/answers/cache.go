package answers

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/engine/cache"
	"github.com/racflow/racflow/engine/governor"
	"github.com/racflow/racflow/sdk"
)

// Run is what a worker needs of a run: *bus.Run has it.
type Run interface {
	Answered(ctx context.Context, key string) ([]byte, error)
	KeepAnswer(ctx context.Context, key string, value []byte) (stands []byte, err error)
	Ask(ctx context.Context, subject string, data []byte) ([]byte, error)
}

// subject is where the caller is asked for answers of earlier runs.
const subject = "answers"

// looks is how many keys of one call are looked for in the bucket at a time.
const looks = 16

// Cache is a governor.Shared for a worker of a run.
type Cache struct {
	ctx   context.Context
	local *cache.Cache
	run   Run

	mu     sync.Mutex
	queue  []*question // that nobody has asked yet
	going  bool        // somebody asks: who does owns absent
	absent time.Time   // until then the caller is not asked
}

var _ governor.Shared = (*Cache)(nil)

// New makes the response cache of a worker: local is that of its state folder. When ctx ends, nothing
// waits for the servers any more.
func New(ctx context.Context, local *cache.Cache, run Run) *Cache {
	return &Cache{ctx: ctx, local: local, run: run}
}

// name is what a key is called in the bucket.
func name(key sdk.Key) string { return hex.EncodeToString(key[:]) }

// Get returns what is kept under a key.
func (c *Cache) Get(key sdk.Key) ([]byte, bool) {
	values, err := c.GetAll(c.ctx, []sdk.Key{key}, false)
	if err != nil {
		return nil, false
	}
	return values[0], values[0] != nil
}

// GetAll implements governor.Shared. What it finds elsewhere is in the folder from then on.
func (c *Cache) GetAll(ctx context.Context, keys []sdk.Key, fresh bool) ([][]byte, error) {
	values := make([][]byte, len(keys))
	var missing []int
	for i, key := range keys {
		ok := false
		if !fresh {
			values[i], ok = c.local.Get(key)
		}
		if !ok {
			missing = append(missing, i)
		}
	}
	if len(missing) == 0 {
		return values, ctx.Err()
	}
	if err := c.lookAll(ctx, keys, values, missing); err != nil || fresh {
		return values, err
	}
	return values, c.askAll(ctx, keys, values, missing)
}

// lookAll looks for keys in the run's bucket.
func (c *Cache) lookAll(ctx context.Context, keys []sdk.Key, values [][]byte, missing []int) error {
	looking, ctx := errgroup.WithContext(ctx)
	looking.SetLimit(looks)
	for _, i := range missing {
		looking.Go(func() (err error) {
			values[i], err = c.look(ctx, keys[i])
			return err
		})
	}
	return looking.Wait()
}

// look looks for a key in the run's bucket.
func (c *Cache) look(ctx context.Context, key sdk.Key) ([]byte, error) {
	data, err := c.run.Answered(ctx, name(key))
	if err != nil || data == nil {
		return nil, err
	}
	a, err := decode(data)
	if err != nil {
		return nil, nil //nolint:nilerr // it is asked for again, as what a folder lost
	}
	_ = c.have(key, a) // at worst it is looked for again
	return a.value, nil
}

// have puts what another machine kept into the folder.
func (c *Cache) have(key sdk.Key, a answer) error {
	if value, ok := c.local.Get(key); ok && bytes.Equal(value, a.value) {
		return nil
	}
	return c.local.Put(key, a.about, a.value)
}

// Add keeps what a service answered: it is in the folder at once, and in the run's bucket when Add
// returns. Where another worker's answer is there already, that one is what all get from then on.
func (c *Cache) Add(key sdk.Key, about string, value []byte) error {
	if err := c.local.Add(key, about, value); err != nil {
		return err
	}
	return c.keep(key, answer{about, value})
}

// Put is Add in the place of what earlier runs kept. What this run kept stands.
func (c *Cache) Put(key sdk.Key, about string, value []byte) error {
	if err := c.local.Put(key, about, value); err != nil {
		return err
	}
	return c.keep(key, answer{about, value})
}

func (c *Cache) keep(key sdk.Key, a answer) error {
	stands, err := c.run.KeepAnswer(c.ctx, name(key), a.encode())
	if err != nil {
		return fmt.Errorf("an answer is kept on this machine alone: %w", err)
	}
	first, err := decode(stands)
	if err != nil {
		return err
	}
	return c.have(key, first)
}
