package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// extensions is how often the servers hear of a batch while its claim lasts: some of that may get lost.
const extensions = 6

// batch begins a claim. It is nil where the batch has an answer already: who had it before has answered, and could not say that it is done.
func (r *Run) batch(ctx context.Context, m jetstream.Msg, claim time.Duration) (*Batch, error) {
	b := &Batch{r: r, m: m}
	b.lost, b.stop = r.extend(m, claim)
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

// extend keeps the claim alive until it is stopped. lost is closed when the servers have not said for as long as it lasts that they heard
// of that.
func (r *Run) extend(m jetstream.Msg, claim time.Duration) (lost <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	gone := make(chan struct{})
	expire := time.AfterFunc(claim, func() {
		close(gone)
		cancel()
	})
	go func() {
		ticker := time.NewTicker(claim / extensions)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
			asked := time.Now()
			within, done := context.WithTimeout(ctx, claim/3)                      // servers may be slow, and a message may be lost
			_, err := r.c.nc.RequestWithContext(within, m.Reply(), []byte("+WPI")) // InProgress with an answer
			done()
			if err != nil {
				continue
			}
			if !expire.Stop() {
				return
			}
			expire.Reset(claim - time.Since(asked))
		}
	}()
	return gone, func() {
		expire.Stop()
		cancel()
	}
}

// Lost is closed when another may have the batch: the servers have not heard from this process for as long as the claim lasts. It is
// neither returned nor worked on then.
func (b *Batch) Lost() <-chan struct{} { return b.lost }

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
