package caller

import (
	"context"

	"github.com/racflow/racflow/engine/cluster/bus"
	"github.com/racflow/racflow/engine/cluster/definition"
	"github.com/racflow/racflow/engine/cluster/packet"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/run"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/engine/terminal"
)

// sendAtOnce is how many batches of a detached run are on their way to the servers at a time: each
// waits for a copy on most of them.
const sendAtOnce = 16

// Send implements engine.Leaver: it publishes the order at the next position. There is no bound to
// how many orders wait at the servers.
func (c *Caller) Send(ctx context.Context, o run.Order) error {
	data, err := packet.EncodeOrder(o)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.state.Published++
	at := bus.Position{Part: c.state.Part, Seq: int(c.state.Published)}
	c.bytes += int64(len(data))
	c.mu.Unlock()
	return c.send(func() error { return c.run.Publish(ctx, at, data) })
}

// Know implements engine.Leaver: it puts results into the storage as a worker would.
func (c *Caller) Know(ctx context.Context, rows []source.Row, results []outcome.Result) error {
	data, err := packet.EncodeAnswers(rows, run.Answers{Results: results})
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.state.Known++
	at := bus.Position{Part: c.state.Part, Seq: definition.KnownSeq + int(c.state.Known)}
	c.bytes += int64(len(data))
	c.mu.Unlock()
	return c.send(func() error {
		_, err := c.run.Answer(ctx, at, data)
		return err
	})
}

// send does what takes a while beside others, of which the first error ends the work.
func (c *Caller) send(do func() error) error {
	if err := c.ended(); err != nil {
		return err
	}
	c.sending.Go(func() error {
		err := do()
		if err != nil {
			c.stop(err)
		}
		return err
	})
	return nil
}

// Leave implements engine.Leaver: the run is that of its workers from now on.
func (c *Caller) Leave(ctx context.Context, items int) error {
	if err := c.sending.Wait(); err != nil {
		return err
	}
	if err := c.ended(); err != nil {
		return err
	}
	c.stop(errEnded)
	c.parts.Wait() // nobody else tells how far the caller is
	c.mu.Lock()
	c.state.Total, c.state.Items, c.state.Detached = c.state.Published, int64(items), true
	batches, size := c.state.Published, c.bytes
	c.mu.Unlock()
	if err := c.put(ctx); err != nil {
		return err
	}
	c.part(ctx, true)
	c.o.Say("run %s is left to its workers: %s in %s (%.1f MB) wait at %s", c.Run(), terminal.Plural(items, "item"), terminal.Plural(int(batches), "batch"), float64(size)/1e6, c.o.Servers)
	return nil
}
