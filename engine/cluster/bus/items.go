package bus

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"
)

// Publish adds a batch to the queue of the run and returns when it is stored; until then it waits. A batch that is in the queue already
// is not added again, and neither is one whose answer came while the servers' word on an earlier attempt was lost.
func (r *Run) Publish(ctx context.Context, at Position, data []byte) error {
	m, err := r.pack(ctx, itemSubject(r.id, at), data)
	if err != nil {
		return fmt.Errorf("publish batch %s: %w", at, err)
	}
	m.Header.Set(jetstream.MsgIDHeader, rand.Text())
	err = r.c.patient(ctx, operation{stream: itemsStream(r.id), uses: []string{m.Subject}, do: func(ctx context.Context, again bool) error {
		if again {
			answered, err := r.answered(ctx, at)
			if answered || err != nil {
				return err
			}
		}
		_, err := r.c.js.PublishMsg(ctx, m, jetstream.WithRetryAttempts(0))
		if taken(err) {
			return nil
		}
		return err
	}})
	if err != nil {
		return fmt.Errorf("publish batch %s: %w", at, err)
	}
	return nil
}

// Drop takes the batches of parts before this one out of the queue. Whoever works at one may still answer it.
func (r *Run) Drop(ctx context.Context, part int) error {
	for old := 1; old < part; old++ {
		if err := r.c.purge(ctx, itemsStream(r.id), subject(r.id, "items", strconv.Itoa(old), "*")); err != nil {
			return fmt.Errorf("drop batches of part %d: %w", old, err)
		}
	}
	return nil
}
