package caller

import (
	"context"

	"golang.org/x/sync/semaphore"
)

const (
	// floorItems are under way however few workers there are: as many as a run on one machine has
	// with a service that takes many calls.
	floorItems = 8192
	// maxItems are under way at most: they are in memory.
	maxItems = 1 << 17
	// jobs is how many batches a worker has in hand that does not say it.
	jobs = 8
)

// Window implements engine.Remote: it is the most that may ever be. Fewer are under way while there
// are few workers.
func (c *Caller) Window(items int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if items = max(items, 1); c.items == items { // another pass
		return int(c.wide)
	}
	c.items = items
	c.wide = int64(max(maxItems/c.items, 2))
	c.room = semaphore.NewWeighted(c.wide)
	c.held = c.wide - min(c.wide, int64(max(floorItems/c.items, 1)))
	c.room.TryAcquire(c.held)
	return int(c.wide)
}

// enter waits until another batch may be under way; leave says that it is not any more.
func (c *Caller) enter(ctx context.Context) (leave func(), err error) {
	c.mu.Lock()
	room := c.room
	c.mu.Unlock()
	if room == nil {
		return func() {}, nil
	}
	return func() { room.Release(1) }, room.Acquire(ctx, 1)
}

// widen lets as many batches be under way as keep the workers busy. It never narrows: who was there
// may come back.
func (c *Caller) widen() {
	want := int64(c.crew.batches())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.room == nil {
		return
	}
	if more := want - (c.wide - c.held); more > 0 {
		more = min(more, c.held)
		c.room.Release(more)
		c.held -= more
	}
}
