package bus

import (
	"context"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/racflow/racflow/sdk/support"
)

// words returns a server-side filter for a prefix: servers match only whole words.
func words(prefix string) string {
	return prefix[:strings.LastIndex(prefix, ".")+1] + ">"
}

// Change is a change of a key.
type Change struct {
	Key string
	State
	Deleted bool
}

// Follow sends the keys with a prefix, first as they are and then each change, until ctx ends or the run is
// removed; then it closes the channel. Of several quick changes it may send only the last.
func (r *Run) Follow(ctx context.Context, prefix string) (<-chan Change, error) {
	if _, err := r.c.hasStream(ctx, stateStream(r.id)); err != nil {
		return nil, err
	}
	changes := make(chan Change)
	go func() {
		defer close(changes)
		there := map[string]bool{}
		for m, err := range r.c.tail(ctx, stateStream(r.id), statePrefix(r.id)+words(prefix), 0) {
			if err != nil {
				if !errors.Is(err, ErrNoRun) {
					r.c.log.Warn("the run's state cannot be followed", "err", err)
				}
				return
			}
			change := Change{Key: strings.TrimPrefix(m.subject, statePrefix(r.id)), State: State{notNil(m.data), m.at, m.sequence}, Deleted: m.header.Get(headerKV) != ""}
			if !strings.HasPrefix(change.Key, prefix) || change.Deleted && !there[change.Key] {
				continue
			}
			if there[change.Key] = true; change.Deleted {
				delete(there, change.Key)
			}
			select {
			case changes <- change:
			case <-ctx.Done():
				return
			}
		}
	}()
	return changes, nil
}

const (
	attemptTimeout = 5 * time.Second
	firstPause     = 50 * time.Millisecond
	longestPause   = 2 * time.Second
	missingTimes   = 4 // in a row, before a stream counts as removed: servers that have just started may not know it yet
	missingPause   = 200 * time.Millisecond
)

var errLost = errors.New("the connection with the servers was lost")

// operation is a request that is repeated until the servers carry it out.
type operation struct {
	uses    []string      // subjects whose refusal ends it
	stream  string        // the stream that it needs; empty: none
	timeout time.Duration // of an attempt; 0: the connection's
	do      func(ctx context.Context, again bool) error
}

// patient repeats an operation until it succeeds, fails with a lasting error, or ctx ends.
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
			if errors.Is(err, errLost) { // already reported
				pause = firstPause
			} else if slow := errors.Is(err, context.DeadlineExceeded); !waiting && (again || slow) {
				waiting = true
				c.waits.enter(reason(err))
			}
			c.log.Debug("the servers could not", "stream", o.stream, "err", err)
		}
		_ = support.SleepFor(ctx, pause/2+mrand.N(pause/2)) // if ctx has ended, the next attempt notices
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

// attempt carries out an operation once, with a timeout.
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

// ended returns why the connection has ended for good.
func (c *Conn) ended() error {
	if err := c.nc.LastError(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		return c.advise(fmt.Errorf("%w: %w", nats.ErrConnectionClosed, err))
	}
	return nats.ErrConnectionClosed
}

// reason explains to people why the servers cannot carry out an operation now.
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

// askTime limits a question whose ctx has no deadline, since answers may be lost.
const askTime = 10 * time.Second

// Ask sends a question to a process that serves the subject in this run, and waits for the answer until ctx ends, or ten seconds
// if ctx has no deadline. It asks once: a lost connection is an error. ErrNobody, returned at once: no process serves it.
func (r *Run) Ask(ctx context.Context, on string, data []byte) ([]byte, error) {
	m, err := r.pack(ctx, subject(r.id, "ask", on), data)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", on, err)
	}
	timeout := askTime
	if end, bounded := ctx.Deadline(); bounded {
		timeout = time.Until(end)
	}
	var answer *nats.Msg
	err = r.c.attempt(ctx, timeout, []string{m.Subject}, func(ctx context.Context) error {
		answer, err = r.c.nc.RequestMsgWithContext(ctx, m)
		return err
	})
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, fmt.Errorf("ask %s: %w", on, ErrNobody)
	case errors.Is(err, nats.ErrPermissionViolation):
		return nil, fmt.Errorf("ask %s: %w", on, r.c.advise(err))
	case err != nil:
		return nil, fmt.Errorf("ask %s: %w", on, err)
	}
	if data, err = r.unpack(ctx, answer.Header, answer.Data); err != nil {
		return nil, fmt.Errorf("ask %s: %w", on, err)
	}
	return data, nil
}

// Serve answers questions on a subject of the run, several at the same time, until stop is called.
// If several processes serve a subject, one of them answers each question.
func (r *Run) Serve(on string, f func(data []byte) []byte) (stop func(), err error) {
	return r.subscribe(subject(r.id, "ask", on), "serve", func(m *nats.Msg, data []byte) {
		ctx, cancel := context.WithTimeout(context.Background(), askTime)
		defer cancel()
		answer, err := r.pack(ctx, m.Reply, f(data))
		if err == nil {
			err = m.RespondMsg(answer)
		}
		if err != nil {
			r.c.log.Warn("a question is not answered", "subject", on, "err", err)
		}
	})
}

// Tell sends a message to all processes that currently Hear the subject in this run. There may be none.
func (r *Run) Tell(on string, data []byte) error {
	if len(data) > r.c.room() {
		return fmt.Errorf("tell %s: %d bytes are too many for one message: %w", on, len(data), nats.ErrMaxPayload)
	}
	if err := r.c.nc.Publish(subject(r.id, "tell", on), data); err != nil {
		return fmt.Errorf("tell %s: %w", on, err)
	}
	return nil
}

// Hear calls f with each message on the subject, one after the other, until stop is called.
func (r *Run) Hear(on string, f func([]byte)) (stop func(), err error) {
	return r.subscribe(subject(r.id, "tell", on), "", func(m *nats.Msg, _ []byte) { f(m.Data) })
}

func (r *Run) subscribe(subject, queue string, f func(*nats.Msg, []byte)) (stop func(), err error) {
	handle := func(m *nats.Msg) { f(m, m.Data) }
	if queue != "" {
		handle = func(m *nats.Msg) {
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), askTime)
				defer cancel()
				data, err := r.unpack(ctx, m.Header, m.Data)
				if err != nil {
					r.c.log.Warn("a question cannot be read", "subject", m.Subject, "err", err)
					return
				}
				f(m, data)
			}()
		}
	}
	sub, err := r.c.nc.QueueSubscribe(subject, queue, handle)
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	// After the server has replied, messages arrive, and a refusal would have arrived earlier. If
	// it does not reply, the subscription is renewed with the connection.
	_ = r.c.nc.FlushTimeout(r.c.timeout)
	if err := r.c.nc.LastError(); errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), `"`+subject+`"`) {
		_ = sub.Unsubscribe()
		return nil, fmt.Errorf("subscribe to %s: %w", subject, r.c.advise(err))
	}
	return func() { _ = sub.Unsubscribe() }, nil
}
