package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// askTime bounds a question where ctx does not: answers may be lost.
const askTime = 10 * time.Second

// Ask sends a question to whoever serves the subject in this run and waits for the answer until ctx ends, without a deadline ten seconds.
// It asks once: a lost connection is an error. ErrNobody: nobody serves it, known at once.
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
	sub, err := r.c.nc.QueueSubscribe(subject, queue, handle)
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	// Once the server has answered, others' messages arrive, and a refusal was told before. Where it does not answer, the subscription
	// is made again with the connection.
	_ = r.c.nc.FlushTimeout(r.c.timeout)
	if err := r.c.nc.LastError(); errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), `"`+subject+`"`) {
		_ = sub.Unsubscribe()
		return nil, fmt.Errorf("subscribe to %s: %w", subject, r.c.advise(err))
	}
	return func() { _ = sub.Unsubscribe() }, nil
}
