package caller

import (
	"context"
	"errors"
	"time"

	"github.com/racflow/racflow/engine/cluster/bus"
	"github.com/racflow/racflow/engine/cluster/definition"
)

const (
	// endWait bounds what the end of a run waits for at the servers: what is not done then, a later
	// caller sweeps.
	endWait = 30 * time.Second
	// takeBackWait bounds how long the end of a run that is to be resumed waits for the servers.
	takeBackWait = 10 * time.Second
	// settleWait bounds how long the end of a run waits for the last words of its workers.
	settleWait = 3 * time.Second
)

var errEnded = errors.New("the run has ended")

// End implements engine.Remote. The journal is closed and the output is in its place by now, so that
// the run is not needed any more where it is complete, or where there is no journal to resume it with.
func (c *Caller) End(ctx context.Context, err error) error {
	if c.stop == nil { // it never began
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
	var taken *takenError
	switch cause := c.ended(); {
	case errors.As(cause, &taken) || errors.Is(cause, bus.ErrNoRun):
		return nil
	case err != nil && c.kept:
		c.takeBack(ctx)
		return nil
	}
	if _, err := c.run.Put(ctx, definition.EndKey, []byte(`{}`)); err != nil {
		c.remains(err)
		return nil
	}
	_ = c.run.Tell(definition.EndKey, nil) // who does not hear it looks
	if c.crew != nil {                     // else Begin failed before it looked for workers
		c.crew.settle(ctx)
		c.observe()
		if spent := c.crew.spent(); c.o.Spent != nil && len(spent.Stages) > 0 {
			c.o.Spent(spent)
		}
	}
	c.part(ctx, true)
	if err := c.run.Remove(ctx); err != nil {
		c.remains(err)
		return nil
	}
	if err := c.forgetAnswers(c.Run()); err != nil {
		c.o.Log.Debug("a note about the run stays in the cache of answers", "error", err)
	}
	c.Sweep(ctx)
	return nil
}

// takeBack takes what no worker has begun out of the queue of a run that stays: who interrupts it does
// not want to pay for that now.
func (c *Caller) takeBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, takeBackWait)
	defer cancel()
	c.stop(errEnded)
	c.parts.Wait() // nobody else tells how far the caller is
	c.mu.Lock()
	part, detached := c.state.Part, c.state.Detached
	if !detached {
		c.state.Published = c.state.Done // what is not in the queue counts as answered
	}
	c.mu.Unlock()
	more := ""
	if !detached { // else it is the workers' own already, as far as they know
		err := c.put(ctx) // where another caller has taken the run over, what waits there is that one's
		if err == nil {
			err = c.run.Drop(ctx, part+1)
		}
		switch {
		case errors.As(err, new(*takenError)):
			return
		case err != nil:
			c.o.Log.Warn("batches that wait at the servers could not be taken back: workers answer them, too", "run", c.Run(), "servers", c.o.Servers, "error", err)
		default:
			more = "; workers finish what they have in hand, and begin nothing more"
		}
	}
	c.o.Say("run %s stays at %s with all that is answered there, which a resumed run takes from it%s", c.Run(), c.o.Servers, more)
}

// part ends what serves workers. With all, their answers of services are here then.
func (c *Caller) part(ctx context.Context, all bool) {
	if err := c.answers.close(ctx, all); err != nil {
		c.o.Log.Warn("answers of services may be missing from this machine's cache: a later run pays for them again", "run", c.Run(), "error", err)
	}
	for _, leave := range c.leave {
		leave()
	}
	c.answers, c.leave = nil, nil
}

// remains says that the run is over, but not away.
func (c *Caller) remains(err error) {
	c.o.Log.Warn("the run is over and could not be removed from the servers: a later run does that", "run", c.Run(), "servers", c.o.Servers, "error", err)
}
