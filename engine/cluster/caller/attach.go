package caller

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/cluster/bus"
	"github.com/racflow/racflow/engine/cluster/definition"
	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/outcome"
)

// Attached is a detached run whose results are being taken.
type Attached struct {
	caller *Caller // of which it uses what watches and ends a run
	state  definition.CallerState
	shelf  *shelf
}

// Attach comes back to a run that its caller has left. Results are kept in a temporary file of a
// folder until they have been taken, since they come in any order.
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
	if c.defined, err = definition.Decode(c.run.Definition()); err != nil {
		return nil, err
	}
	a := &Attached{caller: c}
	if a.state, _, err = callerState(ctx, c.run); err != nil {
		return nil, err
	}
	if !a.state.Detached {
		return nil, fmt.Errorf("run %s was not detached: its caller, %s, has the input; where that has ended, the same command with --resume goes on there", id, a.state.Name)
	}
	if a.shelf, err = newShelf(folder); err != nil {
		return nil, err
	}
	c.crew = newCrew(id, c.o)
	if _, err = c.run.Put(ctx, definition.AttachedKey, []byte(strconv.Quote(conn.Name()))); err == nil {
		err = c.crew.synchronise(ctx, c.run, definition.AttachedKey)
	}
	if err != nil {
		return nil, errors.Join(err, a.shelf.close())
	}
	if c.answers, err = c.serveAnswers(ctx, c.run); err != nil {
		return nil, errors.Join(err, a.shelf.close())
	}
	c.work, c.stop = context.WithCancelCause(ctx)
	workers, err := c.run.Follow(c.work, definition.WorkerPrefix)
	var caller <-chan bus.Change
	if err == nil {
		caller, err = c.run.Follow(c.work, definition.CallerKey)
	}
	if err != nil {
		c.stop(err)
		return nil, errors.Join(err, a.shelf.close())
	}
	c.start(func() { c.crew.watch(c.work, workers, func() {}) })
	c.start(func() { a.taken(caller) })
	c.start(a.receive)
	return a, nil
}

// taken ends the work when a caller goes on with the run, which is not detached then.
func (a *Attached) taken(changes <-chan bus.Change) {
	for range changes {
		now, _, err := callerState(a.caller.work, a.caller.run)
		if err == nil && (now.Part != a.state.Part || !now.Detached) {
			a.caller.stop(&takenError{a.caller.Run(), now.Name})
			return
		}
	}
}

// receive keeps results as they come, until all are there.
func (a *Attached) receive() {
	c, left := a.caller, a.state.Total+a.state.Known
	for r, err := range c.run.Results(c.work, 0) {
		if left == 0 {
			break
		}
		if err == nil && r.Part == a.state.Part {
			left--
			err = a.shelf.add(r)
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

// Definition is what the run is.
func (a *Attached) Definition() *definition.Definition { return a.caller.defined }

// Items is how many items the input has.
func (a *Attached) Items() int { return int(a.state.Items) }

// Elsewhere is the run for engine.Workspace.Attach.
func (a *Attached) Elsewhere() engine.Elsewhere {
	d := a.caller.defined
	m := d.Manifest
	m.Cluster = &manifest.Cluster{Run: d.Run, Servers: a.caller.o.Servers}
	return engine.Elsewhere{Manifest: m, Labels: d.Labels, Keep: d.Keep, Items: a.Items(), Answers: a.answers, End: a.end}
}

// end ends the taking of results. A run of which everything has been taken is not needed any more.
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

// Each calls do with the results of all items in the order of the input, once they are there. It may
// be called before they are taken.
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

// Close lets go of what was received.
func (a *Attached) Close() error {
	a.caller.stop(errEnded)
	a.caller.parts.Wait()
	a.caller.part(context.Background(), false)
	return a.shelf.close()
}
