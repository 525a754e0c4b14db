package worker

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/cache"
	"github.com/racflow/racflow/engine/cluster/answers"
	"github.com/racflow/racflow/engine/cluster/bundle"
	"github.com/racflow/racflow/engine/cluster/bus"
	"github.com/racflow/racflow/engine/cluster/definition"
	"github.com/racflow/racflow/engine/cluster/lease"
	"github.com/racflow/racflow/engine/cluster/packet"
	"github.com/racflow/racflow/engine/cluster/ship"
	"github.com/racflow/racflow/engine/governor"
	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/run"
)

// joiner opens the pipelines of runs.
type joiner struct {
	conn   *bus.Conn
	folder *folder
	kept   ship.Kept
	models []string
	base   engine.Options
}

// opened is a pipeline that takes part in a run.
type opened struct {
	*engine.Pipeline
	size   int
	keep   journal.Keep  // of which items the run's journal has what was seen
	lists  bool          // what was found has texts
	holder *lease.Holder // of the run's limits; nil: no stage calls a service

	mu    sync.Mutex
	ended error // why the stages cannot go on here; it stays so
}

// open brings what the run needs to this machine, and opens its pipeline, which ends with ctx.
func (j *joiner) open(ctx context.Context, at room, d *definition.Definition) (joined, error) {
	r := at.(*natsRoom).Run
	p := &opened{keep: d.Keep, lists: d.Lists}
	if err := p.join(ctx, j, r, d); err != nil {
		p.Close()
		return nil, lacking(err)
	}
	return p, nil
}

// join opens it step by step.
func (p *opened) join(ctx context.Context, j *joiner, r *bus.Run, d *definition.Definition) error {
	dir, err := j.folder.Run(r.ID())
	if err != nil {
		return err
	}
	file, o, err := d.Bundle.Unpack(ctx, j.conn, bundle.Place{State: dir, Kept: j.kept, Models: j.models, Plugins: j.base.Plugins})
	if err != nil {
		return err
	}
	if err := j.kept.Get(ctx, j.conn, d.Files, dir); err != nil {
		return fmt.Errorf("files of the run: %w", err)
	}
	o.Builtin, o.Observe, o.Log, o.Events = j.base.Builtin, j.base.Observe, j.base.Log, j.base.Events
	o.Part, o.Lists, o.Keep = &engine.Part{Manifest: d.Manifest, Spend: d.Spend}, d.Lists, d.Keep
	o.Services = &engine.Services{
		Mode:      d.Mode,
		Responses: func(local *cache.Cache) governor.Responses { return answers.New(ctx, local, r) },
		Governed: func(g *governor.Governor) (err error) {
			p.holder, err = lease.Hold(ctx, r, g, lease.Options{Limits: d.Limits, Name: j.conn.Name(), Log: o.Log})
			return err
		},
	}
	if p.Pipeline, err = engine.Open(ctx, file, o); err != nil {
		return err
	}
	if err := p.Join(ctx); err != nil {
		return err
	}
	ready, err := p.Start(ctx) // Join has started it
	if err != nil {
		return err
	}
	_, p.size = ready.Size()
	p.keep = cmp.Or(d.Keep, journal.Keep(p.Definition().Journal.Keep))
	return nil
}

// Size implements joined.
func (p *opened) Size() int { return p.size }

// Take implements joined.
func (p *opened) Take(ctx context.Context, o run.Order) (run.Answers, error) {
	a, err := p.Pipeline.Take(ctx, o)
	return packet.Trim(a, p.keep, p.lists), err
}

// Trouble implements joined. A budget that is spent is no trouble of this machine: it is the run's.
func (p *opened) Trouble(a run.Answers) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil {
		return p.ended
	}
	if err := p.Workspace().Failed(); err != nil {
		p.ended = fmt.Errorf("a stage is not started any more here: %w", err)
		return p.ended
	}
	why := a.Ended
	if why == nil && len(a.Halted) > 0 {
		why = a.Halted[0]
	}
	if why != nil && p.Workspace().Again() { // a service stayed down, or denied its calls
		p.ended = fmt.Errorf("a stage had to stop here: %w", why)
	}
	return p.ended
}

// Calls implements joined.
func (p *opened) Calls() governor.Snapshot {
	calls, _ := p.Workspace().Spent()
	return calls
}

// Close implements joined.
func (p *opened) Close() {
	if p.Pipeline != nil {
		p.Pipeline.Close()
	}
	if p.holder != nil {
		p.holder.Close()
	}
}
