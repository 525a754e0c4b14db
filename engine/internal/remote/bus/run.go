package bus

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
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

// Answer is what a service answered, as KeepAnswer kept it.
type Answer struct {
	Key      string
	Value    []byte
	Sequence uint64 // in the order of storage: growing
}

// Answers gives the answers of services that were kept after a sequence (0: all), each once, in the order of storage, and waits for more
// until ctx ends, which ends it without an error. Any other error is the last of it. ErrNoRun: the run was removed.
func (r *Run) Answers(ctx context.Context, after uint64) iter.Seq2[Answer, error] {
	return func(yield func(Answer, error) bool) {
		below := strings.TrimSuffix(answerSubject(r.id, ">"), ">")
		for m, err := range r.c.tail(ctx, answersStream(r.id), below+">", after) {
			a := Answer{Key: strings.TrimPrefix(m.subject, below), Sequence: m.sequence}
			if err == nil {
				a.Value, err = r.unpack(ctx, m.header, m.data)
			}
			if err != nil {
				if ctx.Err() == nil {
					yield(Answer{}, fmt.Errorf("answers of services: %w", err))
				}
				return
			}
			if !yield(a, nil) {
				return
			}
		}
	}
}

// LastAnswer is the sequence of the answer of a service that was kept last, 0 where there is none.
func (r *Run) LastAnswer(ctx context.Context) (uint64, error) {
	m, err := r.c.last(ctx, answersStream(r.id), answerSubject(r.id, ">"))
	if m == nil || err != nil {
		return 0, err
	}
	return m.Sequence, nil
}

func (c *Conn) disconnected(_ *nats.Conn, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life.Err() != nil {
		return
	}
	if c.lose(); c.closing {
		return
	}
	c.back = make(chan struct{})
	c.log.Warn("the connection with the servers is lost", "err", err)
	c.waits.enter(fmt.Errorf("the connection with the servers is lost (%s)", c.servers))
}

func (c *Conn) reconnected(nc *nats.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life.Err() == nil {
		return
	}
	c.life, c.lose = context.WithCancel(context.Background())
	close(c.back)
	c.log.Info("the connection with the servers is back", "server", nc.ConnectedUrlRedacted())
	c.waits.leave()
}

// closed hears when there will be no other connection: it was closed here, or the servers refuse this user now.
func (c *Conn) closed(*nats.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lose()
	select {
	case <-c.back:
	default:
		close(c.back)
		c.waits.leave()
	}
}

// connected is a context that ends when the connection is lost: what was under way then did not arrive.
func (c *Conn) connected(ctx context.Context) (context.Context, context.CancelFunc) {
	c.mu.Lock()
	life := c.life
	c.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(life, func() { cancel(errLost) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// awaitBack returns when there is a connection, or ctx ends.
func (c *Conn) awaitBack(ctx context.Context) {
	c.mu.Lock()
	back := c.back
	c.mu.Unlock()
	select {
	case <-back:
	case <-ctx.Done():
	}
}

// Result is the answer of a batch.
type Result struct {
	Position
	Data     []byte
	Sequence uint64 // in the order of storage: growing, with gaps
	Worker   string // Options.Name of the process that answered
}

// Answer stores the answer of a batch and returns when it is stored; until then it waits. The first answer of a position stands for
// the life of the run: first is false, without an error, where this is a later one, which is dropped.
func (r *Run) Answer(ctx context.Context, at Position, data []byte) (first bool, err error) {
	if len(data) > r.c.room() { // pieces of an answer that does not count would lie at the servers for nothing
		m, err := r.c.last(ctx, resultsStream(r.id), resultSubject(r.id, at))
		if m != nil || err != nil {
			return false, err
		}
	}
	m, err := r.pack(ctx, resultSubject(r.id, at), data)
	if err == nil {
		m.Header.Set(headerWorker, r.c.name)
		first, err = r.c.once(ctx, resultsStream(r.id), m)
	}
	if err != nil {
		return false, fmt.Errorf("answer batch %s: %w", at, err)
	}
	return first, nil
}

func (r *Run) answered(ctx context.Context, at Position) (bool, error) {
	s, err := r.c.stream(ctx, resultsStream(r.id))
	if err != nil {
		return false, err
	}
	if _, err = s.GetLastMsgForSubject(ctx, resultSubject(r.id, at)); errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Results gives the answers stored after a sequence (0: all), each once, in the order of storage, and waits for more until ctx ends,
// which ends it without an error. Any other error is the last of it. ErrNoRun: the run was removed.
func (r *Run) Results(ctx context.Context, after uint64) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		for m, err := range r.c.tail(ctx, resultsStream(r.id), subject(r.id, "results", ">"), after) {
			result := Result{Sequence: m.sequence}
			if err == nil {
				result.Position, err = positionOf(m.subject)
			}
			if err == nil {
				result.Worker = m.header.Get(headerWorker)
				result.Data, err = r.unpack(ctx, m.header, m.data)
			}
			if err != nil {
				if ctx.Err() == nil {
					yield(Result{}, fmt.Errorf("results: %w", err))
				}
				return
			}
			if !yield(result, nil) {
				return
			}
		}
	}
}

// Stored is the sequence of the last result, 0 where there is none.
func (r *Run) Stored(ctx context.Context) (uint64, error) {
	m, err := r.c.last(ctx, resultsStream(r.id), subject(r.id, "results", ">"))
	if m == nil || err != nil {
		return 0, err
	}
	return m.Sequence, nil
}

// Config says what run is created.
type Config struct {
	ID         string        // letters and digits
	Definition []byte        // what the run is; it stands for its life
	Replicas   int           // of whatever is stored; 0: 3 in a cluster, 1 at a single server
	Claim      time.Duration // how long a batch is its worker's own without a sign of life; 0: 30 s
}

const defaultClaim = 30 * time.Second

// Run is what lies at the servers for one run.
type Run struct {
	c          *Conn
	id         string
	definition []byte
	takes      taking
}

// ID of the run.
func (r *Run) ID() string { return r.id }

// Definition that the run was created with.
func (r *Run) Definition() []byte { return r.definition }

// Create makes the streams of a run and then enters it where others see it. ErrExists: another run has this ID.
func (c *Conn) Create(ctx context.Context, config Config) (*Run, error) {
	if err := checkID(config.ID); err != nil {
		return nil, err
	}
	if config.Claim <= 0 {
		config.Claim = defaultClaim
	}
	err := c.createStreams(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("create run %s: %w", config.ID, err)
	}
	id := config.ID
	err = c.patient(ctx, operation{uses: []string{"$JS.API.CONSUMER.CREATE." + itemsStream(id)}, do: func(ctx context.Context, _ bool) error {
		_, err := c.js.CreateConsumer(ctx, itemsStream(id), jetstream.ConsumerConfig{Durable: consumer, AckPolicy: jetstream.AckExplicitPolicy,
			AckWait: config.Claim, MaxDeliver: -1, MaxAckPending: -1, MaxWaiting: maxWaiting, FilterSubject: subject(id, "items", ">")})
		return err
	}})
	if err != nil {
		return nil, fmt.Errorf("create run %s: %w", id, err)
	}
	r := &Run{c: c, id: id, definition: config.Definition}
	m, err := r.pack(ctx, subject(id, "definition"), config.Definition)
	if err != nil {
		return nil, fmt.Errorf("create run %s: %w", id, err)
	}
	mine, err := c.once(ctx, resultsStream(id), m)
	switch {
	case err != nil:
		return nil, fmt.Errorf("create run %s: %w", id, err)
	case !mine:
		return nil, fmt.Errorf("create run %s: %w", id, ErrExists)
	}
	if _, err := c.swap(ctx, indexStream, nats.NewMsg(indexPrefix+id), 0, true); err != nil {
		return nil, fmt.Errorf("create run %s: %w", id, err)
	}
	return r, nil
}

// Open finds a run. ErrNoRun: it is not there.
func (c *Conn) Open(ctx context.Context, id string) (*Run, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	entry, err := c.entry(ctx, id)
	switch {
	case err != nil:
		return nil, fmt.Errorf("open run %s: %w", id, err)
	case entry == nil:
		return nil, fmt.Errorf("open run %s: %w", id, ErrNoRun)
	}
	r := &Run{c: c, id: id}
	m, err := c.last(ctx, resultsStream(id), subject(id, "definition"))
	switch {
	case err != nil:
		return nil, fmt.Errorf("open run %s: %w", id, err)
	case m == nil:
		return nil, fmt.Errorf("open run %s: %w: it has no definition", id, ErrNoRun)
	}
	if r.definition, err = r.unpack(ctx, m.Header, m.Data); err != nil {
		return nil, fmt.Errorf("open run %s: %w", id, err)
	}
	return r, nil
}

// Remove deletes whatever the servers have of the run.
func (r *Run) Remove(ctx context.Context) error {
	if err := r.c.unlist(ctx, r.id); err != nil {
		return fmt.Errorf("remove run %s: %w", r.id, err)
	}
	for _, name := range streamNames(r.id) {
		if err := r.c.deleteStream(ctx, name); err != nil {
			return fmt.Errorf("remove run %s: %w", r.id, err)
		}
	}
	return nil
}
