package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// askTime bounds a question where ctx does not: an answer may be lost.
const askTime = 10 * time.Second

// Ask sends a question to whoever serves the subject in this run and waits for the answer. ErrNobody: nobody serves it, known at once.
func (r *Run) Ask(ctx context.Context, on string, data []byte) ([]byte, error) {
	m, err := r.pack(ctx, subject(r.id, "ask", on), data)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", on, err)
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, askTime)
		defer cancel()
	}
	refusable, done := r.c.denied.watch(ctx, []string{m.Subject})
	defer done()
	answer, err := r.c.nc.RequestMsgWithContext(refusable, m)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, fmt.Errorf("ask %s: %w", on, ErrNobody)
	case errors.Is(context.Cause(refusable), nats.ErrPermissionViolation):
		return nil, fmt.Errorf("ask %s: %w", on, r.c.advise(context.Cause(refusable)))
	case err != nil:
		return nil, fmt.Errorf("ask %s: %w", on, err)
	}
	if data, err = r.unpack(ctx, answer.Header, answer.Data); err != nil {
		return nil, fmt.Errorf("ask %s: %w", on, err)
	}
	return data, nil
}

// Serve answers questions on a subject of the run, several at a time, until stop is called. Where several processes serve it, one of them
// answers each question.
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

// Tell sends a message to all who hear the subject in this run now. Nobody has to.
func (r *Run) Tell(on string, data []byte) error {
	if len(data) > r.c.room() {
		return fmt.Errorf("tell %s: %d bytes are too many for one message: %w", on, len(data), nats.ErrMaxPayload)
	}
	if err := r.c.nc.Publish(subject(r.id, "tell", on), data); err != nil {
		return fmt.Errorf("tell %s: %w", on, err)
	}
	return nil
}

// Hear calls f with every message on the subject, one after another, until stop is called.
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
	ctx, done := r.c.denied.watch(context.Background(), []string{subject})
	defer done()
	sub, err := r.c.nc.QueueSubscribe(subject, queue, handle)
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	// Once the server has answered, others' messages arrive, and a refusal has been told.
	if err = r.c.nc.FlushTimeout(attemptTimeout); err == nil {
		if err = r.c.nc.LastError(); !errors.Is(err, nats.ErrPermissionViolation) || context.Cause(ctx) == nil {
			err = nil
		}
	}
	if err != nil {
		_ = sub.Unsubscribe()
		return nil, fmt.Errorf("subscribe to %s: %w", subject, r.c.advise(err))
	}
	return func() { _ = sub.Unsubscribe() }, nil
}
