package caller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/racflow/racflow/engine/cluster/bus"
	"github.com/racflow/racflow/engine/cluster/definition"
)

// tellEvery is how often the caller says how far it is.
const tellEvery = 2 * time.Second

// takenError says that another caller works on the run.
type takenError struct{ run, by string }

func (e *takenError) Error() string {
	return fmt.Sprintf("run %s was taken over by %s: this caller has left it, and what it has is kept", e.run, e.by)
}

// tell says for the first time what part this caller works on. Who has said so since is another.
func (c *Caller) tell(ctx context.Context, s definition.CallerState) error {
	c.mu.Lock()
	c.state = s
	c.mu.Unlock()
	return c.put(ctx)
}

// put says how far the caller is. An error says that another caller has taken the run over.
func (c *Caller) put(ctx context.Context) error {
	c.mu.Lock()
	s := c.state
	c.mu.Unlock()
	s.Name, s.Host, s.At = c.conn.Name(), c.host, time.Now().UTC().Truncate(time.Millisecond)
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	revision, err := c.run.Swap(ctx, definition.CallerKey, text, c.stated)
	if errors.Is(err, bus.ErrRevision) {
		if now, at, e := callerState(ctx, c.run); e == nil && now.Name == s.Name && now.Part == s.Part {
			c.stated = at // it was put after all, and the answer got lost
			return nil
		} else if e == nil {
			return &takenError{c.Run(), now.Name}
		}
	}
	if err == nil {
		c.stated = revision
	}
	return err
}

// report says how far the caller is from time to time, until the work ends.
func (c *Caller) report() {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-c.work.Done():
			return
		}
		err := c.put(c.work)
		switch {
		case err == nil:
			c.observe()
		case c.work.Err() != nil:
		case errors.Is(err, bus.ErrNoRun) || errors.As(err, new(*takenError)):
			c.stop(err)
		default:
			c.o.Log.Warn("how far the run is could not be told", "run", c.Run(), "error", err)
		}
	}
}
