package bus

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// batch begins a claim. It is nil where the batch has an answer already: who had it before has answered, and could not say that it is done.
func (r *Run) batch(ctx context.Context, m jetstream.Msg, claim time.Duration) (*Batch, error) {
	b := &Batch{r: r, m: m, stop: r.extend(m, claim)}
	err := func() (err error) {
		if b.Position, err = positionOf(m.Subject()); err != nil {
			return err
		}
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		if b.Deliveries = int(meta.NumDelivered); b.Deliveries > 1 {
			answered := false
			err := r.c.patient(ctx, operation{stream: resultsStream(r.id), uses: []string{"$JS.API.STREAM.MSG.GET." + resultsStream(r.id)},
				do: func(ctx context.Context, _ bool) error {
					answered, err = r.answered(ctx, b.Position)
					return err
				}})
			if err != nil {
				return err
			}
			if answered {
				if err := b.Done(ctx); err != nil {
					return err
				}
				b = nil
				return nil
			}
		}
		b.Data, err = r.unpack(ctx, m.Headers(), m.Data())
		return err
	}()
	if err != nil {
		_ = b.Return()
		return nil, fmt.Errorf("take a batch: %w", err)
	}
	return b, nil
}

// extend keeps the claim alive until it is stopped.
func (r *Run) extend(m jetstream.Msg, claim time.Duration) (stop func()) {
	done := make(chan struct{})
	go func() {
		ticker := time.NewTicker(claim / 3)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				if err := m.InProgress(); err != nil && r.c.nc.IsClosed() {
					return
				}
			case <-done:
				return
			}
		}
	}()
	return sync.OnceFunc(func() { close(done) })
}

// Done takes the batch out of the queue, after its answer is stored. Where it was handed to another meanwhile, that one's is taken out as well.
func (b *Batch) Done(ctx context.Context) error {
	defer b.stop()
	err := b.r.c.patient(ctx, operation{stream: itemsStream(b.r.id), uses: []string{"$JS.ACK"}, do: func(ctx context.Context, _ bool) error {
		err := b.m.DoubleAck(ctx)
		return err
	}})
	if err != nil {
		return fmt.Errorf("batch %s is done: %w", b.Position, err)
	}
	return nil
}

// Return gives the batch to another now.
func (b *Batch) Return() error {
	b.stop()
	if err := b.m.Nak(); err != nil {
		return fmt.Errorf("return batch %s: %w", b.Position, err)
	}
	return nil
}
