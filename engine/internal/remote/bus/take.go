package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Backlog describes the queue of a run.
type Backlog struct {
	Waiting  int       // batches that no worker has
	UnderWay int       // batches that a worker has, or has abandoned: the latter wait for another worker soon
	Oldest   time.Time // when the oldest batch in the queue was published; zero: there is none
	Now      time.Time // by the same clock, the servers'
}

// Backlog returns the present state of the queue.
func (r *Run) Backlog(ctx context.Context) (b Backlog, err error) {
	err = r.c.on(ctx, itemsStream(r.id), func(ctx context.Context, s jetstream.Stream) error {
		queue, err := s.Consumer(ctx, consumer)
		if err != nil {
			return err
		}
		info, err := s.Info(ctx)
		if err != nil {
			return err
		}
		// A consumer counts new messages a moment later. A message in the stream that was not handed out waits.
		taken := queue.CachedInfo().NumAckPending
		b = Backlog{Waiting: max(0, int(info.State.Msgs)-taken), UnderWay: taken, Now: info.TimeStamp} //nolint:gosec // fewer than 2^63
		if info.State.Msgs > 0 {
			b.Oldest = info.State.FirstTime
		}
		return nil
	})
	if err != nil {
		return Backlog{}, fmt.Errorf("the queue of run %s: %w", r.id, err)
	}
	return b, nil
}

// Batch is a batch that this process has taken. Its claim is extended until Done or Return, or until the connection is closed.
type Batch struct {
	Position
	Data       []byte
	Deliveries int // how often it was handed out, including this time

	r    *Run
	m    jetstream.Msg
	lost chan struct{}
	stop func()
}

const (
	pullTime  = 20 * time.Second // of one request for a batch
	pullAlive = 3 * time.Second  // heartbeat interval meanwhile
)

// Take waits for a batch. It is safe for concurrent use. ErrNoRun: the run was removed.
func (r *Run) Take(ctx context.Context) (*Batch, error) {
	for {
		b, err := r.pull(ctx)
		if err != nil {
			return nil, fmt.Errorf("take a batch: %w", err)
		}
		if b == nil {
			continue
		}
		answered, err := b.read(ctx)
		switch {
		case err != nil:
			_ = b.Return()
			return nil, fmt.Errorf("take a batch: %w", err)
		case !answered:
			return b, nil
		}
		_ = b.Done(ctx) // if this fails, it comes again
	}
}

// pull requests one batch and begins its claim; nil: there was none in time. If ctx ends first, a batch that still arrives is
// returned at once.
func (r *Run) pull(ctx context.Context) (b *Batch, err error) {
	err = r.c.tryFor(ctx, pullTime+attemptTimeout, itemsStream(r.id), func(ctx context.Context) error {
		queue, err := handle(ctx, r.c, itemsStream(r.id)+" "+consumer, func(ctx context.Context, _ string) (jetstream.Consumer, error) {
			return r.c.js.Consumer(ctx, itemsStream(r.id), consumer)
		})
		if err != nil {
			return err
		}
		got, err := queue.Fetch(1, jetstream.FetchMaxWait(pullTime), jetstream.FetchHeartbeat(pullAlive))
		if err != nil {
			return err
		}
		select {
		case m, ok := <-got.Messages():
			if !ok {
				return got.Error()
			}
			b = &Batch{r: r, m: m, lost: make(chan struct{})}
			b.extend(queue.CachedInfo().Config.AckWait)
			return nil
		case <-ctx.Done():
			go func() {
				for m := range got.Messages() {
					_ = m.Nak() // if this is lost, the claim expires
				}
			}()
			return ctx.Err()
		}
	})
	return b, err
}

// read reads the batch. It reports whether there is an answer: the previous worker answered and could not acknowledge the batch.
func (b *Batch) read(ctx context.Context) (answered bool, err error) {
	meta, err := b.m.Metadata()
	if err != nil {
		return false, err
	}
	if b.Position, err = positionOf(b.m.Subject()); err != nil {
		return false, err
	}
	if b.Deliveries = int(meta.NumDelivered); b.Deliveries > 1 { //nolint:gosec // fewer than 2^63
		found, err := b.r.c.last(ctx, resultsStream(b.r.id), resultSubject(b.r.id, b.Position))
		if found != nil || err != nil {
			return found != nil, err
		}
	}
	b.Data, err = b.r.unpack(ctx, &jetstream.RawStreamMsg{Header: b.m.Headers(), Data: b.m.Data()})
	return false, err
}

// extensions is how often a claim is extended while it lasts: some extensions may get lost.
const extensions = 6

// extend extends the claim until stop is called. It closes lost when the servers have confirmed no
// extension for the length of the claim.
func (b *Batch) extend(claim time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	expire := time.AfterFunc(claim, func() {
		close(b.lost)
		cancel()
	})
	b.stop = func() {
		expire.Stop()
		cancel()
	}
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
			within, done := context.WithTimeout(ctx, claim/3)                          // servers may be slow, and a message may be lost
			_, err := b.r.c.nc.RequestWithContext(within, b.m.Reply(), []byte("+WPI")) // InProgress with a reply
			done()
			if err == nil && expire.Stop() {
				expire.Reset(claim - time.Since(asked))
			}
		}
	}()
}

// Lost is closed when another worker may get the batch, since the servers have not heard from this
// process for the length of the claim. Then stop work on the batch and do not return it.
func (b *Batch) Lost() <-chan struct{} { return b.lost }

// Done removes the batch from the queue; call it after storing the answer. It works even if the batch was handed to another worker
// meanwhile. If it fails, another worker gets the batch and finds the answer.
func (b *Batch) Done(ctx context.Context) error {
	defer b.stop()
	if err := b.r.c.attempt(ctx, b.r.c.timeout, b.m.DoubleAck); err != nil {
		return fmt.Errorf("batch %s is done: %w", b.Position, err)
	}
	return nil
}

// Return hands the batch to another worker now.
func (b *Batch) Return() error {
	b.stop()
	if err := b.m.Nak(); err != nil {
		return fmt.Errorf("return batch %s: %w", b.Position, err)
	}
	return nil
}
