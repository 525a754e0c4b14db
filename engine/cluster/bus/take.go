package bus

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Batch is taken by this process. Its claim is extended until Done or Return, or until the connection is closed.
type Batch struct {
	Position
	Data       []byte
	Deliveries int // how often it was handed out, this time included

	r    *Run
	m    jetstream.Msg
	lost <-chan struct{}
	stop func()
}

// taking is what Take knows of the queue, found at the first one.
type taking struct {
	mu    sync.Mutex
	queue jetstream.Consumer
	claim time.Duration
}

const (
	pullTime  = 20 * time.Second // one request for a batch
	pullAlive = 3 * time.Second  // signs of life meanwhile
)

func (r *Run) queue(ctx context.Context) (jetstream.Consumer, time.Duration, error) {
	r.takes.mu.Lock()
	defer r.takes.mu.Unlock()
	if r.takes.queue != nil {
		return r.takes.queue, r.takes.claim, nil
	}
	err := r.c.patient(ctx, operation{stream: itemsStream(r.id), uses: []string{"$JS.API.CONSUMER.INFO." + itemsStream(r.id)}, do: func(ctx context.Context, _ bool) error {
		q, err := r.c.js.Consumer(ctx, itemsStream(r.id), consumer)
		if err == nil {
			r.takes.queue, r.takes.claim = q, q.CachedInfo().Config.AckWait
		}
		return err
	}})
	return r.takes.queue, r.takes.claim, err
}

// Take waits for a batch. It may be called by many goroutines. ErrNoRun: the run was removed.
func (r *Run) Take(ctx context.Context) (*Batch, error) {
	queue, claim, err := r.queue(ctx)
	if err != nil {
		return nil, fmt.Errorf("take a batch: %w", err)
	}
	for {
		var m jetstream.Msg
		err := r.c.patient(ctx, operation{stream: itemsStream(r.id), timeout: pullTime + attemptTimeout,
			uses: []string{"$JS.API.CONSUMER.MSG.NEXT." + itemsStream(r.id)}, do: func(ctx context.Context, _ bool) error {
				m, err = r.pull(ctx, queue)
				return err
			}})
		if err != nil {
			return nil, fmt.Errorf("take a batch: %w", err)
		}
		if m == nil {
			continue
		}
		b, err := r.batch(ctx, m, claim)
		if b != nil || err != nil {
			return b, err
		}
	}
}

// pull asks for one batch. Where ctx ends first, a batch that arrives all the same goes back at once.
func (r *Run) pull(ctx context.Context, queue jetstream.Consumer) (jetstream.Msg, error) {
	got, err := queue.Fetch(1, jetstream.FetchMaxWait(pullTime), jetstream.FetchHeartbeat(pullAlive))
	if err != nil {
		return nil, err
	}
	select {
	case m, ok := <-got.Messages():
		if ok {
			return m, nil
		}
		return nil, got.Error()
	case <-ctx.Done():
		go func() {
			for m := range got.Messages() {
				_ = m.Nak() // where that does not arrive, its claim ends
			}
		}()
		return nil, ctx.Err()
	}
}
