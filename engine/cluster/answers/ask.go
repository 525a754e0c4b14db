package answers

import (
	"context"
	"time"

	"github.com/racflow/racflow/sdk"
)

// patience is how long the caller may take for a reply. One that takes longer, such as one that is
// stopped, is not asked for a while: until then every look would take that long.
const (
	patience = 10 * time.Second
	leave    = time.Minute
)

// question is a key that the caller is asked for.
type question struct {
	key    sdk.Key
	answer chan replied // gets one
}

// askAll asks the caller for those keys that are missing still.
func (c *Cache) askAll(ctx context.Context, keys []sdk.Key, values [][]byte, missing []int) error {
	asked := map[int]*question{}
	for _, i := range missing {
		if values[i] == nil {
			asked[i] = &question{keys[i], make(chan replied, 1)}
		}
	}
	c.enqueue(asked)
	for i, q := range asked {
		var r replied
		select {
		case r = <-q.answer:
		case <-ctx.Done():
			return ctx.Err()
		}
		switch r.says {
		case found:
			values[i] = r.value
			_ = c.have(q.key, r.answer) // at worst it is asked for again
		case kept:
			var err error
			if values[i], err = c.look(ctx, q.key); err != nil {
				return err
			}
		}
	}
	return nil
}

// enqueue has questions asked. What comes while the caller is being asked goes there together afterwards:
// so a thousand goroutines make a few messages.
func (c *Cache) enqueue(asked map[int]*question) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, q := range asked {
		c.queue = append(c.queue, q)
	}
	if !c.going && len(c.queue) > 0 {
		c.going = true
		go c.askQueued()
	}
}

// askQueued asks until nothing is left to ask.
func (c *Cache) askQueued() {
	for {
		c.mu.Lock()
		asking := c.queue
		c.queue = nil
		if len(asking) == 0 {
			c.going = false
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		by := map[sdk.Key][]*question{} // of equal ones, one is asked
		var keys []sdk.Key
		for _, q := range asking {
			if by[q.key] == nil {
				keys = append(keys, q.key)
			}
			by[q.key] = append(by[q.key], q)
		}
		for len(keys) > 0 {
			now := keys[:min(len(keys), maxKeys)]
			keys = keys[len(now):]
			all := c.ask(now)
			for i, r := range all {
				if r.says == later && all[0].says != later { // it cannot be that nothing fits
					keys = append(keys, now[i])
					continue
				}
				for _, q := range by[now[i]] {
					q.answer <- r
				}
			}
		}
	}
}

// ask asks the caller for keys. Where nobody replies there is nothing.
func (c *Cache) ask(keys []sdk.Key) []replied {
	none := make([]replied, len(keys))
	if time.Now().Before(c.absent) {
		return none
	}
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	data, err := c.run.Ask(ctx, subject, encodeQuestion(keys))
	if err == nil {
		var all []replied
		if all, err = decodeReply(data, len(keys)); err == nil {
			return all
		}
	}
	if ctx.Err() != nil {
		c.absent = time.Now().Add(leave)
	}
	return none
}
