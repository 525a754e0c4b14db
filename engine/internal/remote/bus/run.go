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

// Publish adds a batch to the queue of the run. It waits until the batch is stored. It does not add a batch that is
// already in the queue, nor one that was answered after the servers' acknowledgement of an earlier attempt was lost.
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

// Drop removes the batches of earlier parts from the queue. Workers that have already taken one may still answer it.
func (r *Run) Drop(ctx context.Context, part int) error {
	for old := 1; old < part; old++ {
		if err := r.c.purge(ctx, itemsStream(r.id), subject(r.id, "items", strconv.Itoa(old), "*")); err != nil {
			return fmt.Errorf("drop batches of part %d: %w", old, err)
		}
	}
	return nil
}

// Answer is an answer of a service, as stored by KeepAnswer.
type Answer struct {
	Key      string
	Value    []byte
	Sequence uint64 // in the order of storage: growing
}

// Answers yields the answers of services stored after a sequence number (0: all), each once, in the order of storage, and waits
// for more until ctx ends. The end of ctx is no error; after any other error the iteration ends. ErrNoRun: the run was removed.
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

// LastAnswer returns the sequence number of the newest answer of a service; 0: there is none.
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

// closed is called when no further connection will follow: it was closed here, or the servers now refuse this user.
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

// connected returns a context that ends when the connection is lost, because messages in flight are then lost, too.
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

// awaitBack waits until there is a connection, or ctx ends.
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

// Answer stores the answer of a batch and waits until it is stored. The first answer of a position stands for
// the life of the run: for a later answer, which is dropped, first is false and err is nil.
func (r *Run) Answer(ctx context.Context, at Position, data []byte) (first bool, err error) {
	if len(data) > r.c.room() { // do not store the pieces of an answer that will not count
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

// Results yields the answers of batches stored after a sequence number (0: all), each once, in the order of storage, and waits
// for more until ctx ends. The end of ctx is no error; after any other error the iteration ends. ErrNoRun: the run was removed.
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

// Stored returns the sequence number of the newest result; 0: there is none.
func (r *Run) Stored(ctx context.Context) (uint64, error) {
	m, err := r.c.last(ctx, resultsStream(r.id), subject(r.id, "results", ">"))
	if m == nil || err != nil {
		return 0, err
	}
	return m.Sequence, nil
}

// Config describes the run to create.
type Config struct {
	ID         string        // letters and digits
	Definition []byte        // describes the run; never changes
	Replicas   int           // of everything stored; 0: 3 in a cluster, 1 on a single server
	Claim      time.Duration // how long a batch stays its worker's without an extension; 0: 30 s
}

const defaultClaim = 30 * time.Second

// Run is a run at the servers.
type Run struct {
	c          *Conn
	id         string
	definition []byte
	takes      taking
}

// ID returns the ID of the run.
func (r *Run) ID() string { return r.id }

// Definition returns the definition that the run was created with.
func (r *Run) Definition() []byte { return r.definition }

// Create creates the streams of a run and then lists it in the index. ErrExists: another run has this ID.
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

// Open finds a run. ErrNoRun: it does not exist.
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

// Remove deletes everything of the run at the servers.
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
