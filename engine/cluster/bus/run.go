package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

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
