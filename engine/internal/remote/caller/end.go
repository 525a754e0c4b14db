package caller

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/knowledge/cache"
	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/engine/internal/remote/packet"
	"github.com/racflow/racflow/engine/internal/run"
)

// serveAnswers serves this machine's response cache to the workers of a run, and copies their answers into it; nil: there is
// no state folder.
func (c *Caller) serveAnswers(ctx context.Context, run *bus.Run) (*bus.AnswersServer, error) {
	if c.o.State == "" {
		return nil, nil
	}
	folder, err := cache.Open(filepath.Join(c.o.State, engine.CacheFolder), c.o.Log)
	if err != nil {
		return nil, err
	}
	server, err := bus.ServeAnswers(context.WithoutCancel(ctx), run, folder, c.o.Log)
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return server, nil
}

const (
	// endWait limits how long the end of a run waits for the servers; a later caller sweeps what
	// remains.
	endWait = 30 * time.Second
	// takeBackWait limits how long interrupting a run waits for the servers.
	takeBackWait = 10 * time.Second
	// settleWait limits how long the end of a run waits for the last reports of its workers.
	settleWait = 3 * time.Second
)

var errEnded = errors.New("the run has ended")

// End implements engine.Remote. By now the journal is closed and the output is complete, so it
// removes a run that is complete, or that has no journal to resume it with.
func (c *Caller) End(ctx context.Context, err error) error {
	if c.stop == nil { // the run never began
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWait)
	defer cancel()
	defer func() {
		c.stop(errEnded)
		c.parts.Wait()
		c.part(ctx, false)
	}()
	if c.run == nil {
		return nil
	}
	switch {
	case errors.Is(c.ended(), bus.ErrNoRun):
		return nil
	case err != nil && c.kept:
		c.takeBack(ctx)
		return nil
	}
	if _, err := c.run.Put(ctx, EndKey, []byte(`{}`)); err != nil {
		c.remains(err)
		return nil
	}
	_ = c.run.Tell(EndKey, nil) // workers that miss it find the key
	if spent := c.settle(ctx); c.o.Spent != nil && len(spent.Stages) > 0 {
		c.o.Spent(spent)
	}
	c.part(ctx, true)
	if err := c.run.Remove(ctx); err != nil {
		c.remains(err)
		return nil
	}
	c.Sweep(ctx)
	return nil
}

// takeBack removes the batches that no worker has begun from the queue of an interrupted run,
// because its user does not want to pay for them now.
func (c *Caller) takeBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, takeBackWait)
	defer cancel()
	c.stop(errEnded)
	c.parts.Wait() // then no other goroutine reports the caller's progress
	c.mu.Lock()
	detached := c.state.Detached
	if !detached {
		c.state.Published = c.state.Done // batches that are not in the queue count as answered
	}
	c.mu.Unlock()
	more := ""
	if !detached { // a detached run belongs to its workers
		err := c.put(ctx)
		if err == nil {
			err = c.run.Drop(ctx)
		}
		switch {
		case errors.Is(err, bus.ErrNoRun): // who resumed the run has removed it
			return
		case err != nil:
			c.o.Log.Warn("batches that wait at the servers could not be taken back: workers answer them, too", "run", c.Run(), "servers", c.o.Servers, "error", err)
		default:
			more = "; workers finish what they have in hand, and begin nothing more"
		}
	}
	c.o.Say("run %s stays at %s with all that is answered there, which a resumed run takes from it%s", c.Run(), c.o.Servers, more)
}

// part stops the services for workers. With all, it first copies all their answers to this machine.
func (c *Caller) part(ctx context.Context, all bool) {
	if c.answers != nil {
		if err := c.answers.Close(ctx, all); err != nil {
			c.o.Log.Warn("answers of services may be missing from this machine's cache: a later run pays for them again", "run", c.Run(), "error", err)
		}
	}
	if c.keeper != nil {
		c.keeper.Close()
	}
	c.answers, c.keeper = nil, nil
}

// remains logs that a finished run could not be removed.
func (c *Caller) remains(err error) {
	c.o.Log.Warn("the run is over and could not be removed from the servers: a later run does that", "run", c.Run(), "servers", c.o.Servers, "error", err)
}

// answers yields the results of all items in the order of the input.
func (a *Attached) answers(yield func(run.Answers, error) bool) {
	for seq := 1; seq <= int(a.caller.state.Total); seq++ {
		r, err := a.result(bus.Position{Part: part, Seq: seq})
		var batch run.Answers
		if err == nil {
			if _, batch, err = packet.DecodeAnswers(r.Data); err != nil {
				err = fmt.Errorf("the result of batch %d, by %s: %w", seq, r.Worker, err)
			}
		}
		if !yield(batch, err) || err != nil {
			return
		}
	}
}
