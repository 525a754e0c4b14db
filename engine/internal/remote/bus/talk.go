package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// askTime limits a question whose ctx has no deadline, since answers may be lost.
const askTime = 10 * time.Second

// Ask sends a question to a process that serves the subject in this run, and waits for the answer until ctx ends, or ten seconds
// if ctx has no deadline. It asks once: a lost connection is an error. ErrNobody, returned at once: no process serves it.
func (r *Run) Ask(ctx context.Context, on string, data []byte) ([]byte, error) {
	data, err := r.ask(ctx, subject(r.id, "ask", on), data)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", on, err)
	}
	return data, nil
}

func (r *Run) ask(ctx context.Context, on string, data []byte) ([]byte, error) {
	m, err := r.pack(ctx, on, data)
	if err != nil {
		return nil, err
	}
	timeout := askTime
	if end, bounded := ctx.Deadline(); bounded {
		timeout = time.Until(end)
	}
	var answer *nats.Msg
	err = r.c.attempt(ctx, timeout, func(ctx context.Context) error {
		answer, err = r.c.nc.RequestMsgWithContext(ctx, m)
		return err
	})
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, ErrNobody
	case errors.Is(err, nats.ErrPermissionViolation):
		return nil, r.c.advise(err)
	case err != nil:
		return nil, err
	}
	return r.unpack(ctx, &jetstream.RawStreamMsg{Header: answer.Header, Data: answer.Data})
}

// Serve answers questions on a subject of the run, several at the same time, until stop is called.
// If several processes serve a subject, one of them answers each question.
func (r *Run) Serve(on string, f func(data []byte) []byte) (stop func(), err error) {
	return r.subscribe(subject(r.id, "ask", on), "serve", func(m *nats.Msg) {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), askTime)
			defer cancel()
			data, err := r.unpack(ctx, &jetstream.RawStreamMsg{Header: m.Header, Data: m.Data})
			var answer *nats.Msg
			if err == nil {
				answer, err = r.pack(ctx, m.Reply, f(data))
			}
			if err == nil {
				err = m.RespondMsg(answer)
			}
			if err != nil {
				r.c.log.Warn("a question is not answered", "subject", on, "err", err)
			}
		}()
	})
}

// Tell sends a message to all processes that currently Hear the subject in this run. There may be none.
func (r *Run) Tell(on string, data []byte) error {
	if err := r.c.nc.Publish(subject(r.id, "tell", on), data); err != nil {
		return fmt.Errorf("tell %s: %w", on, err)
	}
	return nil
}

// Hear calls f with each message on the subject, one after the other, until stop is called.
func (r *Run) Hear(on string, f func([]byte)) (stop func(), err error) {
	return r.subscribe(subject(r.id, "tell", on), "", func(m *nats.Msg) { f(m.Data) })
}

func (r *Run) subscribe(subject, queue string, handle nats.MsgHandler) (stop func(), err error) {
	sub, err := r.c.nc.QueueSubscribe(subject, queue, handle)
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	// After the server has replied, messages arrive, and a refusal would have arrived earlier. If
	// it does not reply, the subscription is renewed with the connection.
	within, done := context.WithTimeout(context.Background(), r.c.timeout)
	defer done()
	_ = r.c.nc.FlushWithContext(within)
	if err := r.c.nc.LastError(); errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), `"`+subject+`"`) {
		_ = sub.Unsubscribe()
		return nil, fmt.Errorf("subscribe to %s: %w", subject, r.c.advise(err))
	}
	return func() { _ = sub.Unsubscribe() }, nil
}
