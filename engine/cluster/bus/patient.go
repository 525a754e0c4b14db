package bus

import (
	"context"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/racflow/racflow/sdk/support"
)

const (
	attemptTimeout = 5 * time.Second
	firstPause     = 50 * time.Millisecond
	longestPause   = 2 * time.Second
	missingTimes   = 4 // in a row, before a stream counts as gone: servers that have just started may not know it yet
	missingPause   = 200 * time.Millisecond
)

var errLost = errors.New("the connection with the servers was lost")

// operation is something that is asked of the servers until they do it.
type operation struct {
	uses    []string      // subjects whose refusal ends it
	stream  string        // what it cannot do without; empty: nothing
	timeout time.Duration // of an attempt; 0: the connection's
	do      func(ctx context.Context, again bool) error
}

// patient repeats an operation until it succeeds or fails for a reason that does not pass, or ctx ends.
func (c *Conn) patient(ctx context.Context, o operation) error {
	waiting := false
	defer func() {
		if waiting {
			c.waits.leave()
		}
	}()
	missing, pause := 0, firstPause
	for again := false; ; again = true {
		err := c.attempt(ctx, o.timeout, o.uses, func(ctx context.Context) error { return o.do(ctx, again) })
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if c.nc.IsClosed() {
			return c.ended()
		}
		absent := errors.Is(err, jetstream.ErrStreamNotFound)
		if !absent && o.stream != "" && (errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse)) {
			absent = c.absent(ctx, o.stream)
		}
		if absent {
			if missing++; missing == missingTimes {
				return fmt.Errorf("%w: stream %s is not there", ErrNoRun, o.stream)
			}
			pause = missingPause
		} else {
			missing = 0
			if !passes(err) {
				return c.advise(err)
			}
			if errors.Is(err, errLost) { // which is told already
				pause = firstPause
			} else if slow := errors.Is(err, context.DeadlineExceeded); !waiting && (again || slow) {
				waiting = true
				c.waits.enter(reason(err))
			}
			c.log.Debug("the servers could not", "stream", o.stream, "err", err)
		}
		_ = support.SleepFor(ctx, pause/2+mrand.N(pause/2)) // or ctx has ended, as the next attempt sees
		c.awaitBack(ctx)
		pause = min(2*pause, longestPause)
	}
}

func (c *Conn) absent(ctx context.Context, stream string) bool {
	err := c.attempt(ctx, 0, []string{"$JS.API.STREAM.INFO." + stream}, func(ctx context.Context) error {
		_, err := c.js.Stream(ctx, stream)
		return err
	})
	return errors.Is(err, jetstream.ErrStreamNotFound)
}

// attempt asks once, for a limited time.
func (c *Conn) attempt(ctx context.Context, timeout time.Duration, uses []string, do func(context.Context) error) error {
	if timeout == 0 {
		timeout = c.timeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ctx, end := c.connected(ctx)
	defer end()
	ctx, done := c.denied.watch(ctx, uses)
	defer done()
	err := do(ctx)
	if cause := context.Cause(ctx); err != nil && (errors.Is(cause, nats.ErrPermissionViolation) || errors.Is(cause, errLost)) {
		return cause
	}
	return err
}

// ended says why there is no connection any more.
func (c *Conn) ended() error {
	if err := c.nc.LastError(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		return c.advise(fmt.Errorf("%w: %w", nats.ErrConnectionClosed, err))
	}
	return nats.ErrConnectionClosed
}

// reason says for people why the servers cannot do what is asked of them now.
func reason(err error) error {
	var api *jetstream.APIError
	switch {
	case errors.As(err, &api):
		return fmt.Errorf("the servers cannot store or answer now: %s", api.Description)
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrNoStreamResponse):
		return errors.New("no server leads this stream now: fewer than half of its servers can be reached, or they have just started")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return errors.New("the servers do not answer in time: fewer than half of them can be reached, or they are overloaded")
	}
	return err
}
