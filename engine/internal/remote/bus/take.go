package bus

import (
	"context"
	"fmt"
	"sync"
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
func (r *Run) Backlog(ctx context.Context) (Backlog, error) {
	var b Backlog
	stream := itemsStream(r.id)
	err := r.c.patient(ctx, operation{stream: stream, uses: []string{"$JS.API.STREAM.INFO." + stream, "$JS.API.CONSUMER.INFO." + stream}, do: func(ctx context.Context, _ bool) error {
		s, err := r.c.stream(ctx, stream)
		if err != nil {
			return err
		}
		queue, err := s.Consumer(ctx, consumer)
		if err != nil {
			return err
		}
		info, err := s.Info(ctx)
		if err != nil {
			return err
		}
		waiting := queue.CachedInfo()
		// A consumer counts new messages a moment later. A message in the stream that was not handed out waits.
		b = Backlog{Waiting: max(0, int(info.State.Msgs)-waiting.NumAckPending), UnderWay: waiting.NumAckPending, Now: info.TimeStamp} //nolint:gosec // fewer than 2^63
		if info.State.Msgs > 0 {
			b.Oldest = info.State.FirstTime
		}
		return nil
	}})
	if err != nil {
		return Backlog{}, fmt.Errorf("the queue of run %s: %w", r.id, err)
	}
	return b, nil
}

// extensions is how often a claim is extended while it lasts: some extensions may get lost.
const extensions = 6

// batch starts a claim. It returns nil if the batch already has an answer: its previous worker answered and could not acknowledge it.
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

// extend extends the claim until stop is called. It closes lost when the servers have confirmed no
// extension for the length of the claim.
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
			_, err := r.c.nc.RequestWithContext(within, m.Reply(), []byte("+WPI")) // InProgress with a reply
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

// Lost is closed when another worker may get the batch, since the servers have not heard from this
// process for the length of the claim. Then stop work on the batch and do not return it.
func (b *Batch) Lost() <-chan struct{} { return b.lost }

// Done removes the batch from the queue; call it after storing the answer. It works even if the batch was handed to another worker meanwhile.
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

// Return hands the batch to another worker now.
func (b *Batch) Return() error {
	b.stop()
	if err := b.m.Nak(); err != nil {
		return fmt.Errorf("return batch %s: %w", b.Position, err)
	}
	return nil
}

// Batch is a batch that this process has taken. Its claim is extended until Done or Return, or until the connection is closed.
type Batch struct {
	Position
	Data       []byte
	Deliveries int // how often it was handed out, including this time

	r    *Run
	m    jetstream.Msg
	lost <-chan struct{}
	stop func()
}

// taking caches what Take knows of the queue after the first call.
type taking struct {
	mu    sync.Mutex
	queue jetstream.Consumer
	claim time.Duration
}

const (
	pullTime  = 20 * time.Second // of one request for a batch
	pullAlive = 3 * time.Second  // heartbeat interval meanwhile
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

// Take waits for a batch. It is safe for concurrent use. ErrNoRun: the run was removed.
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

// pull requests one batch. If ctx ends first, a batch that still arrives is returned at once.
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
				_ = m.Nak() // if this is lost, the claim expires
			}
		}()
		return nil, ctx.Err()
	}
}

// waits calls notify when a first operation begins to wait, and when the last one has stopped.
type waits struct {
	notify func(why error)
	mu     sync.Mutex
	n      int
}

func (w *waits) enter(why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.n++; w.n == 1 && w.notify != nil {
		w.notify(why)
	}
}

func (w *waits) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.n--; w.n == 0 && w.notify != nil {
		w.notify(nil)
	}
}
