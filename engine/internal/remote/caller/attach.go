package caller

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/engine/internal/remote/packet"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/show/terminal"
	"github.com/racflow/racflow/sdk/support"
)

// Attached is a detached run whose results are being collected.
type Attached struct {
	caller *Caller // does the watching and ending of the run
}

// Attach takes up a run that its caller has detached from.
func Attach(ctx context.Context, conn *bus.Conn, id string, o Options) (*Attached, error) {
	o.Run = id
	c, err := New(conn, o)
	if err != nil {
		return nil, err
	}
	if c.run, err = conn.Open(ctx, id); errors.Is(err, bus.ErrNoRun) {
		return nil, fmt.Errorf("there is no run %s at %s: it is over, and who attached to it has its results, or it is at other servers", id, o.Servers)
	} else if err != nil {
		return nil, err
	}
	if c.defined, err = DecodeDefinition(c.run.Definition()); err != nil {
		return nil, err
	}
	if c.state, err = callerState(ctx, c.run); err != nil {
		return nil, err
	}
	if !c.state.Detached {
		return nil, fmt.Errorf("run %s was not detached: its caller, %s, has the input; where that has ended, the same command with --resume goes on there", id, c.state.Name)
	}
	if _, err = c.run.Put(ctx, AttachedKey, []byte(strconv.Quote(conn.Name()))); err != nil {
		return nil, err
	}
	if c.answers, err = c.serveAnswers(ctx, c.run); err != nil {
		return nil, err
	}
	c.work, c.stop = context.WithCancelCause(ctx)
	c.parts.Go(c.report)
	return &Attached{c}, nil
}

// lookEvery is how often an attached run looks for the result that it writes next.
const lookEvery = 200 * time.Millisecond

// result waits for the result of a batch.
func (a *Attached) result(at bus.Position) (bus.Result, error) {
	c := a.caller
	for {
		r, err := c.run.Result(c.work, at)
		switch {
		case err != nil:
			c.lost(fmt.Errorf("results of run %s: %w", c.Run(), err))
		case r != nil:
			return *r, nil
		}
		if support.SleepFor(c.work, lookEvery) != nil {
			return bus.Result{}, context.Cause(c.work)
		}
	}
}

// Items returns the number of items in the input.
func (a *Attached) Items() int { return int(a.caller.state.Items) }

// Elsewhere describes the run for engine.Workspace.Attach.
func (a *Attached) Elsewhere() engine.Elsewhere {
	d := a.caller.defined
	m := d.Manifest
	m.Cluster = &journal.ManifestCluster{Run: d.Run, Servers: a.caller.o.Servers}
	return engine.Elsewhere{Manifest: m, Labels: d.Labels, Keep: d.Keep, Items: a.Items(), Answers: a.answers, End: a.end}
}

// end ends the collection of results. It removes a run whose results have all been read.
func (a *Attached) end(ctx context.Context, err error) error {
	c := a.caller
	if err == nil {
		return c.End(ctx, nil)
	}
	if !errors.Is(c.ended(), bus.ErrNoRun) {
		c.o.Say("run %s stays at %s: racflow runs attach %s comes back to it", c.Run(), c.o.Servers, c.Run())
	}
	a.Close()
	return nil
}

// Each calls do with the results of all items in the order of the input, as soon as they arrive. It
// may be called before all have arrived.
func (a *Attached) Each(do func(outcome.Result) error) error {
	for answers, err := range a.answers {
		if err != nil {
			return err
		}
		for i, r := range answers.Results {
			if _, left := answers.Left[i]; left {
				continue
			}
			if err := do(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close ends the collection of results.
func (a *Attached) Close() {
	a.caller.stop(errEnded)
	a.caller.parts.Wait()
	a.caller.part(context.Background(), false)
}

// sendAtOnce is how many batches of a detached run are published at the same time: each waits until
// most servers have a copy.
const sendAtOnce = 16

// Send implements engine.Leaver: it publishes the order at the next position. Any number of orders
// may wait at the servers.
func (c *Caller) Send(ctx context.Context, o run.Order) error {
	data, err := packet.EncodeOrder(o)
	if err != nil {
		return err
	}
	at := c.fill(data)
	return c.send(func() error { return c.run.Publish(ctx, at, data) })
}

// fill reserves the next position of a detached run for data.
func (c *Caller) fill(data []byte) bus.Position {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes += int64(len(data))
	return c.position()
}

// Know implements engine.Leaver: it stores results as a worker would.
func (c *Caller) Know(ctx context.Context, rows []source.Row, results []outcome.Result) error {
	data, err := packet.EncodeAnswers(rows, run.Answers{Results: results})
	if err != nil {
		return err
	}
	at := c.fill(data)
	return c.send(func() error {
		_, err := c.run.Answer(ctx, at, data)
		return err
	})
}

// send runs do in parallel with other calls. The first error ends the work.
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

// Leave implements engine.Leaver: it leaves the run to its workers.
func (c *Caller) Leave(ctx context.Context, items int) error {
	if err := c.sending.Wait(); err != nil {
		return err
	}
	if err := c.ended(); err != nil {
		return err
	}
	c.stop(errEnded)
	c.parts.Wait() // then no other goroutine reports the caller's progress
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
