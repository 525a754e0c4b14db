package caller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/engine/internal/remote/packet"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/show/terminal"
)

// resume takes over what an earlier run has at the servers: its results go to the journal and the answers of
// services to this machine. Then it is removed, so that its workers and callers end.
func (c *Caller) resume(ctx context.Context, b engine.Beginning) error {
	before := b.Manifest.Cluster.Run
	earlier, err := c.conn.Open(ctx, before)
	switch {
	case errors.Is(err, bus.ErrNoRun):
		c.o.Say("run %s is not at %s any more: what the journal lacks is asked again", before, c.o.Servers)
	case err != nil:
		return err
	default:
		if err := c.take(ctx, earlier, b.Keep); err != nil {
			return err
		}
	}
	c.o.Say("run %s goes on as run %s", before, c.Run())
	if b.Place != nil {
		if err := b.Place(*c.defined.Manifest.Cluster); err != nil {
			return err
		}
	}
	if earlier == nil {
		return nil
	}
	return earlier.Remove(ctx)
}

// take ends an earlier run and copies what it has to this machine.
func (c *Caller) take(ctx context.Context, earlier *bus.Run, keep func([]outcome.Result) (int, error)) error {
	if _, err := earlier.Put(ctx, EndKey, []byte(`{}`)); err != nil {
		return err
	}
	_ = earlier.Tell(EndKey, nil) // workers that miss it find the key
	upTo, err := earlier.Stored(ctx)
	if err != nil {
		return err
	}
	if keep != nil && upTo > 0 {
		if err := c.recall(ctx, earlier, upTo, keep); err != nil {
			return err
		}
	}
	answers, err := c.serveAnswers(ctx, earlier)
	if answers == nil || err != nil {
		return err
	}
	return answers.Close(ctx, true)
}

// recall copies stored results of an earlier run into the journal. Items that failed or lack a
// voter's answer are asked again, as in any resumed run.
func (c *Caller) recall(ctx context.Context, earlier *bus.Run, upTo uint64, keep func([]outcome.Result) (int, error)) error {
	items := 0
	for r, err := range earlier.Results(ctx, 0) {
		if err != nil {
			return err
		}
		_, answers, err := packet.DecodeAnswers(r.Data)
		if err != nil {
			c.o.Log.Warn("a result at the servers cannot be read: its items are asked again", "run", earlier.ID(), "batch", r.Position, "error", err)
		}
		var whole []outcome.Result
		for i, one := range answers.Results {
			if _, left := answers.Left[i]; !left && one.Failure == nil && len(one.Missing) == 0 {
				whole = append(whole, one)
			}
		}
		fresh, err := keep(whole)
		if err != nil {
			return err
		}
		if items += fresh; r.Sequence >= upTo {
			break
		}
	}
	if items > 0 {
		c.o.Say("run %s: %s answered meanwhile at %s", earlier.ID(), terminal.Plural(items, "item"), c.o.Servers)
	}
	return nil
}

// callerState returns the progress of a run's caller; zero: it has not reported any.
func callerState(ctx context.Context, of *bus.Run) (state SeenCaller, err error) {
	text, revision, err := of.Get(ctx, CallerKey)
	if err != nil || revision == 0 {
		return state, err
	}
	if err := json.Unmarshal(text, &state); err != nil {
		return state, fmt.Errorf("run %s: what its caller says of it cannot be read: %w", of.ID(), err)
	}
	return state, nil
}

// tellEvery is how often the caller reports its progress, and looks at that of the workers.
const tellEvery = 2 * time.Second

// put stores the caller's progress.
func (c *Caller) put(ctx context.Context) error {
	c.mu.Lock()
	s := c.state
	c.mu.Unlock()
	s.Name, s.Host, s.At = c.conn.Name(), c.host, time.Now().UTC().Truncate(time.Millisecond)
	text, err := json.Marshal(s)
	if err == nil {
		_, err = c.run.Put(ctx, CallerKey, text)
	}
	return err
}

// report stores the caller's progress and looks at that of the workers from time to time, until the work ends.
func (c *Caller) report() {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for c.work.Err() == nil {
		_, err := c.look(c.work)
		if err == nil && !c.state.Detached { // else it has attached, and changes nothing
			err = c.put(c.work)
		}
		switch {
		case err == nil || c.work.Err() != nil:
		case errors.Is(err, bus.ErrNoRun):
			c.lost(err)
		default:
			c.o.Log.Warn("how far the run is could not be reported", "run", c.Run(), "error", err)
		}
		select {
		case <-tick.C:
		case <-c.work.Done():
		}
	}
}
