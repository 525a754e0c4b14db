package caller

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/engine/internal/remote/packet"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/show/terminal"
)

// Attached is a detached run whose results are being collected.
type Attached struct {
	caller *Caller // does the watching and ending of the run
	state  SeenCaller
	spool  *spool
}

// Attach takes up a run that its caller has detached from. Results arrive in any order, so they are
// stored in a temporary file in folder until they are read.
func Attach(ctx context.Context, conn *bus.Conn, id, folder string, o Options) (*Attached, error) {
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
	a := &Attached{caller: c}
	if a.state, _, err = callerState(ctx, c.run); err != nil {
		return nil, err
	}
	if !a.state.Detached {
		return nil, fmt.Errorf("run %s was not detached: its caller, %s, has the input; where that has ended, the same command with --resume goes on there", id, a.state.Name)
	}
	if a.spool, err = newSpool(folder); err != nil {
		return nil, err
	}
	c.crew = newCrew(id, c.o)
	if _, err = c.run.Put(ctx, AttachedKey, []byte(strconv.Quote(conn.Name()))); err == nil {
		err = c.crew.synchronise(ctx, c.run, AttachedKey)
	}
	if err != nil {
		return nil, errors.Join(err, a.spool.close())
	}
	if c.answers, err = c.serveAnswers(ctx, c.run); err != nil {
		return nil, errors.Join(err, a.spool.close())
	}
	c.work, c.stop = context.WithCancelCause(ctx)
	c.start(func() { c.crew.watch(c.work, c.run.Follow(c.work, WorkerPrefix), func() {}) })
	c.start(func() { a.taken(c.run.Follow(c.work, CallerKey)) })
	c.start(a.receive)
	return a, nil
}

// taken ends the work when a caller resumes the run, which is then no longer detached.
func (a *Attached) taken(changes <-chan bus.Change) {
	for range changes {
		now, _, err := callerState(a.caller.work, a.caller.run)
		if err == nil && (now.Part != a.state.Part || !now.Detached) {
			a.caller.stop(&takenError{a.caller.Run(), now.Name})
			return
		}
	}
}

// receive stores results as they arrive, until it has all.
func (a *Attached) receive() {
	c, left := a.caller, a.state.Total+a.state.Known
	for r, err := range c.run.Results(c.work, 0) {
		if left == 0 {
			break
		}
		if err == nil && r.Part == a.state.Part {
			left--
			err = a.spool.add(r)
		}
		if err != nil {
			c.stop(fmt.Errorf("results of run %s: %w", c.Run(), err))
			return
		}
		if left == 0 {
			return
		}
	}
}

// Items returns the number of items in the input.
func (a *Attached) Items() int { return int(a.state.Items) }

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
		return errors.Join(c.End(ctx, nil), a.Close())
	}
	if cause := c.ended(); !errors.As(cause, new(*takenError)) && !errors.Is(cause, bus.ErrNoRun) {
		c.o.Say("run %s stays at %s: racflow runs attach %s comes back to it", c.Run(), c.o.Servers, c.Run())
	}
	return a.Close()
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

// Close deletes the received results.
func (a *Attached) Close() error {
	a.caller.stop(errEnded)
	a.caller.parts.Wait()
	a.caller.part(context.Background(), false)
	return a.spool.close()
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
	c.mu.Lock()
	c.state.Published++
	at := bus.Position{Part: c.state.Part, Seq: int(c.state.Published)}
	c.bytes += int64(len(data))
	c.mu.Unlock()
	return c.send(func() error { return c.run.Publish(ctx, at, data) })
}

// Know implements engine.Leaver: it stores results as a worker would.
func (c *Caller) Know(ctx context.Context, rows []source.Row, results []outcome.Result) error {
	data, err := packet.EncodeAnswers(rows, run.Answers{Results: results})
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.state.Known++
	at := bus.Position{Part: c.state.Part, Seq: KnownSeq + int(c.state.Known)}
	c.bytes += int64(len(data))
	c.mu.Unlock()
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

// observe reports the run's progress to the observers of the pipeline.
func (c *Caller) observe() {
	if c.watched == nil {
		return
	}
	c.observing.Lock()
	defer c.observing.Unlock()
	b, err := c.run.Backlog(c.work)
	if err != nil {
		return // the next report includes it
	}
	c.mu.Lock()
	done := c.state.Done
	c.mu.Unlock()
	c.watched.Cluster(c.defined.Manifest.Pipeline, outcome.Cluster{Workers: c.crew.states(), Waiting: b.Waiting, UnderWay: b.UnderWay, Done: int(done)})
}

// states counts the present workers by state.
func (c *crew) states() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := map[string]int{}
	for _, w := range c.workers {
		if !w.at.IsZero() {
			n[w.State]++
		}
	}
	return n
}
