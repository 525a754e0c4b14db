package bus

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Backlog is what lies in the queue of a run.
type Backlog struct {
	Waiting  int       // batches that nobody has
	UnderWay int       // batches that somebody has, or had and gave no sign of life for: they wait for another soon
	Oldest   time.Time // when the first of both was published; zero: there are none
	Now      time.Time // by the same clock, the servers'
}

// Backlog says what lies in the queue now.
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
		// A consumer counts what is new in its stream a moment later; what is in the stream and was not handed out waits.
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

// waits reports when waiting begins and when it is over, once for all who wait at the same time.
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
