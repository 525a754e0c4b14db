package caller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/cluster/bundle"
	"github.com/racflow/racflow/engine/cluster/bus"
	"github.com/racflow/racflow/engine/cluster/definition"
	"github.com/racflow/racflow/engine/cluster/lease"
	"github.com/racflow/racflow/engine/cluster/ship"
	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/journal/manifest"
)

// Begin implements engine.Remote. It makes the run at the servers, or another part of it.
func (c *Caller) Begin(ctx context.Context, b engine.Beginning) error {
	c.kept, c.watched = b.Manifest.ID != "", b.Pipeline.Workspace().Options().Observe
	id := c.o.Run
	if b.Resumed && b.Manifest.Cluster != nil {
		id = b.Manifest.Cluster.Run
	}
	c.sending.SetLimit(sendAtOnce)
	c.work, c.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	if err := c.define(ctx, id, b); err != nil {
		return err
	}
	var earlier *bus.Run
	var err error
	if b.Resumed {
		if earlier, err = c.conn.Open(ctx, id); err != nil && !errors.Is(err, bus.ErrNoRun) {
			return err
		}
	}
	if earlier != nil {
		err = c.resume(ctx, earlier, b)
	} else {
		if b.Resumed && b.Manifest.Cluster != nil {
			c.o.Say("run %s is not at %s any more: what the journal lacks is asked again", id, c.o.Servers)
			err = c.move(b)
		}
		if err == nil {
			err = c.create(ctx, b.Pipeline)
		}
	}
	if err != nil {
		return err
	}
	return c.serve(ctx)
}

// define makes the definition, and uploads the files that it names.
func (c *Caller) define(ctx context.Context, id string, b engine.Beginning) error {
	packed, err := bundle.Of(b.Pipeline)
	if err != nil {
		return err
	}
	m := b.Manifest
	m.Command, m.Output = nil, "" // of this machine alone
	m.Cluster = &manifest.Cluster{Run: id, Servers: c.o.Servers}
	o := b.Pipeline.Workspace().Options()
	d := &definition.Definition{
		Format: definition.Format, Run: id, Caller: c.conn.Name(), Version: engine.Version(), Started: m.Started,
		Manifest: m, Labels: b.Labels, Bundle: packed, Limits: lease.LimitsOf(b.Pipeline.Definition(), o.Services.Budget),
		Keep: cmp.Or(o.Keep, journal.Keep(b.Pipeline.Definition().Journal.Keep)), Lists: o.Lists, Spend: o.Spend, Mode: o.Services.Mode,
	}
	if !d.Spend.IsSet() {
		d.Spend = m.Spend // of a resumed run that is not given another
	}
	if d.Started.IsZero() {
		d.Started = time.Now().UTC().Truncate(time.Millisecond)
	}
	if spent, any := b.Pipeline.Workspace().Spent(); any {
		d.Limits.Spent = lease.Amount{Cost: spent.Total.Cost, Tokens: int64(spent.Total.InputTokens + spent.Total.OutputTokens)} //nolint:gosec // tokens are not that many
	}
	c.defined = d
	return c.upload(ctx, b.Pipeline)
}

// upload brings files to the servers that are not there.
func (c *Caller) upload(ctx context.Context, p *engine.Pipeline) error {
	files, err := p.Shipment()
	if err != nil {
		return err
	}
	if c.defined.Files, err = ship.Put(ctx, c.conn, files); err != nil {
		return fmt.Errorf("bring the knowledge of the run to %s: %w", c.o.Servers, err)
	}
	if err := c.defined.Bundle.Put(ctx, c.conn); err != nil {
		return fmt.Errorf("bring the files of the run to %s: %w", c.o.Servers, err)
	}
	return nil
}

// create makes the run at the servers. Files are looked at again afterwards: before, nothing has kept
// another caller from sweeping them.
func (c *Caller) create(ctx context.Context, p *engine.Pipeline) error {
	text, err := c.defined.Encode()
	if err != nil {
		return err
	}
	if c.run, err = c.conn.Create(ctx, bus.Config{ID: c.defined.Run, Definition: text, Replicas: c.o.Replicas, Claim: c.o.Claim}); err != nil {
		return err
	}
	if err := c.upload(ctx, p); err != nil {
		return err
	}
	return c.tell(ctx, definition.CallerState{Part: 1})
}

// keep hands out the limits of the run. After a death of the caller it waits until whoever has done so
// meanwhile gives that back.
func (c *Caller) keep(ctx context.Context) error {
	within, cancel := context.WithCancel(c.work)
	stop := context.AfterFunc(ctx, cancel)
	limits := c.defined.Limits
	c.mu.Lock()
	limits.Part = c.state.Part // each has a budget of its own, as a run that is resumed on one machine
	c.mu.Unlock()
	keeper, err := lease.Keep(within, c.run, limits, lease.Options{Name: c.conn.Name(), Log: c.o.Log})
	if !stop() || err != nil {
		cancel()
		return cmp.Or(err, ctx.Err())
	}
	c.leave = append(c.leave, func() {
		keeper.Close()
		cancel()
	})
	return nil
}

// serve begins what runs beside the batches.
func (c *Caller) serve(ctx context.Context) error {
	c.crew = newCrew(c.Run(), c.o)
	if err := c.keep(ctx); err != nil {
		return err
	}
	var err error
	if c.answers, err = c.serveAnswers(ctx, c.run); err != nil {
		return err
	}
	if err := c.crew.synchronise(ctx, c.run, definition.CallerKey); err != nil {
		return err
	}
	changes, err := c.run.Follow(c.work, definition.WorkerPrefix)
	if err != nil {
		return err
	}
	after := c.after
	c.start(func() { c.receive(after) })
	c.start(func() { c.crew.watch(c.work, changes, c.widen) })
	c.start(c.report)
	return nil
}
