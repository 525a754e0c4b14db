package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/cluster/bus"
	"github.com/racflow/racflow/engine/cluster/ship"
)

// keptFor is how long files stay that no run has asked for.
const keptFor = 14 * 24 * time.Hour

// Work takes part in runs at the servers until ctx ends. Then it takes no more batches, and returns
// once those under way have ended or are given back. Servers that are away are waited for.
func Work(ctx context.Context, conn *bus.Conn, o Options) (err error) {
	if o.Engine.Log == nil {
		o.Engine.Log = slog.New(slog.DiscardHandler)
	}
	f, err := openFolder(o.State)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	kept := ship.Kept{Dir: f.Files()}
	if err := kept.Trim(time.Now().Add(-keptFor)); err != nil {
		o.Engine.Log.Warn("files that no run has asked for in a long time stay", "folder", kept.Dir, "error", err)
	}
	there, err := conn.Runs(ctx)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	if err := f.clear(there); err != nil {
		o.Engine.Log.Warn("what runs have left that are over stays", "folder", f.own, "error", err)
	}
	j := &joiner{conn: conn, folder: f, kept: kept, models: o.Models, base: o.Engine}
	w := o.worker(conn, j.open)
	w.gone = f.Remove
	return w.until(ctx, o.Again)
}

// worker makes a worker of servers.
func (o Options) worker(conn *bus.Conn, open opener) *worker {
	w := &worker{
		name: conn.Name(), version: engine.Version(), at: natsServers{conn}, open: open,
		gone:   func(string) error { return nil },
		places: newLine(together), idle: idle, grace: o.Grace, again: &bell{}, say: o.Say, log: o.Engine.Log,
	}
	if o.Jobs > 0 {
		w.jobs = newLine(o.Jobs)
	}
	if w.grace <= 0 {
		w.grace = time.Minute
	}
	if w.say == nil {
		w.say = func(string, ...any) {}
	}
	return w
}

// until runs until ctx ends. Each value of again has it look at once for what it lacks.
func (w *worker) until(ctx context.Context, again <-chan struct{}) error {
	ctx, stop := context.WithCancel(ctx)
	rings := make(chan struct{})
	go func() {
		defer close(rings)
		for {
			select {
			case <-again:
				w.again.ring()
			case <-ctx.Done():
				return
			}
		}
	}()
	err := w.run(ctx)
	stop()
	<-rings
	return err
}
