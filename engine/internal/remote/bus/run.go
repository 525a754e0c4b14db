package bus

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/racflow/racflow/sdk/support"
)

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
}

// ID returns the ID of the run.
func (r *Run) ID() string { return r.id }

// Definition returns the definition that the run was created with.
func (r *Run) Definition() []byte { return r.definition }

// Create lists a run in the index as unfinished, creates its streams, and then lists it for others. ErrExists: another run has this ID.
func (c *Conn) Create(ctx context.Context, config Config) (*Run, error) {
	if err := checkID(config.ID); err != nil {
		return nil, err
	}
	if config.Claim <= 0 {
		config.Claim = defaultClaim
	}
	r := &Run{c: c, id: config.ID, definition: config.Definition}
	if err := r.create(ctx, config); err != nil {
		return nil, fmt.Errorf("create run %s: %w", config.ID, err)
	}
	return r, nil
}

func (r *Run) create(ctx context.Context, config Config) error {
	if err := r.c.createStream(ctx, bucketConfig(index), config.Replicas); err != nil {
		return err
	}
	if _, err := r.c.swap(ctx, index, r.id, []byte(unfinished+rand.Text()), 0); errors.Is(err, ErrRevision) {
		return ErrExists
	} else if err != nil {
		return err
	}
	for _, s := range streamsOf(r.id) {
		if err := r.c.createStream(ctx, s, config.Replicas); err != nil {
			return err
		}
	}
	err := r.c.try(ctx, "", func(ctx context.Context) error {
		_, err := r.c.js.CreateConsumer(ctx, itemsStream(r.id), jetstream.ConsumerConfig{Durable: consumer, AckPolicy: jetstream.AckExplicitPolicy,
			AckWait: config.Claim, MaxDeliver: -1, MaxAckPending: -1, MaxWaiting: maxWaiting, FilterSubject: subject(r.id, "items", ">")})
		return err
	})
	if err != nil {
		return err
	}
	m, err := r.pack(ctx, subject(r.id, "definition"), config.Definition)
	if err != nil {
		return err
	}
	if _, err := r.c.publish(ctx, resultsStream(r.id), m); err != nil {
		return err
	}
	return r.c.list(ctx, r.id, "")
}

// unfinished begins the value of a run in the index whose streams are being created or removed. That of others is empty.
const unfinished = "unfinished "

func (c *Conn) list(ctx context.Context, id, value string) error {
	return c.bucket(ctx, index, func(ctx context.Context, kv jetstream.KeyValue) error {
		_, err := kv.PutString(ctx, id, value)
		return err
	})
}

// Open finds a run. ErrNoRun: it does not exist.
func (c *Conn) Open(ctx context.Context, id string) (*Run, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	listed, err := c.Listed(ctx, id)
	if err == nil && !listed {
		err = ErrNoRun
	}
	r := &Run{c: c, id: id}
	var m *jetstream.RawStreamMsg
	if err == nil {
		m, err = c.last(ctx, resultsStream(id), subject(id, "definition"))
	}
	switch {
	case err != nil:
	case m == nil:
		err = fmt.Errorf("%w: it has no definition", ErrNoRun)
	default:
		r.definition, err = r.unpack(ctx, m)
	}
	if err != nil {
		return nil, fmt.Errorf("open run %s: %w", id, err)
	}
	return r, nil
}

// Remove deletes everything of the run at the servers.
func (r *Run) Remove(ctx context.Context) error {
	if err := r.remove(ctx); err != nil {
		return fmt.Errorf("remove run %s: %w", r.id, err)
	}
	return nil
}

func (r *Run) remove(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, longestPause)
	defer cancel()
	if err := r.c.list(within, r.id, unfinished); err != nil && within.Err() == nil { // without it, too: a full store takes no entries
		return err
	}
	for _, s := range streamsOf(r.id) {
		err := r.c.try(ctx, "", func(ctx context.Context) error {
			err := r.c.js.DeleteStream(ctx, s.Name)
			if errors.Is(err, jetstream.ErrStreamNotFound) {
				return nil
			}
			return err
		})
		if err != nil {
			return err
		}
		r.c.handles.Delete(s.Name)
	}
	r.c.handles.Delete(stateBucket(r.id))
	return r.c.purge(ctx, kvStream+index, keySubject(index, r.id)) // which leaves no marker: there may be thousands of runs
}

// Listed reports whether the index has a run. The run's streams may be missing for a while, because
// servers that have just started may not know them yet.
func (c *Conn) Listed(ctx context.Context, id string) (bool, error) {
	entry, err := c.last(ctx, kvStream+index, keySubject(index, id))
	if errors.Is(err, ErrNoRun) {
		return false, nil
	}
	return entry != nil && len(entry.Data) == 0, err
}

// runs returns the runs in the index, oldest first, which are finished or not.
func (c *Conn) runs(ctx context.Context, finished bool) ([]*jetstream.RawStreamMsg, error) {
	all, err := c.all(ctx, kvStream+index, keySubject(index, ">"))
	if errors.Is(err, ErrNoRun) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	return slices.DeleteFunc(all, func(m *jetstream.RawStreamMsg) bool { return finished != (len(m.Data) == 0) }), nil
}

func indexed(m *jetstream.RawStreamMsg) (id string) {
	return strings.TrimPrefix(m.Subject, keySubject(index, ""))
}

// Runs returns the IDs of the existing runs, oldest first.
func (c *Conn) Runs(ctx context.Context) ([]string, error) {
	all, err := c.runs(ctx, true)
	ids := make([]string, len(all))
	for i, m := range all {
		ids[i] = indexed(m)
	}
	return ids, err
}

// Sweep removes runs whose creation or removal was interrupted before a time, by the servers' clock.
func (c *Conn) Sweep(ctx context.Context, before time.Time) error {
	all, err := c.runs(ctx, false)
	for _, m := range all {
		if m.Time.Before(before) {
			err = errors.Join(err, (&Run{c: c, id: indexed(m)}).Remove(ctx))
		}
	}
	return err
}

// lookAgain is how often Watch checks whether a first run exists.
const lookAgain = 500 * time.Millisecond

// Watch sends the IDs of the existing runs, oldest first, and of new ones, until ctx ends; then it
// closes the channel. A run may be over or removed before its ID is read.
func (c *Conn) Watch(ctx context.Context) <-chan string {
	ids := make(chan string)
	go func() {
		defer close(ids)
		for after := uint64(0); ctx.Err() == nil && !c.nc.IsClosed(); {
			for m, err := range c.tail(ctx, kvStream+index, keySubject(index, ">"), after) {
				if err != nil {
					if after = 0; !errors.Is(err, ErrNoRun) {
						c.log.Warn("runs cannot be watched", "err", err)
					}
					break
				}
				if after = m.Sequence; len(m.Data) > 0 {
					continue
				}
				select {
				case ids <- indexed(m):
				case <-ctx.Done():
				}
			}
			_ = support.SleepFor(ctx, lookAgain) // a first caller creates the index
		}
	}()
	return ids
}

// Publish adds a batch to the queue of the run. It waits until the batch is stored. It does not add a batch that is already in the
// queue. One that was answered may be added again if the servers' acknowledgement was lost and they were away for two minutes.
func (r *Run) Publish(ctx context.Context, at Position, data []byte) error {
	m, err := r.pack(ctx, itemSubject(r.id, at), data)
	if err == nil {
		m.Header.Set(jetstream.MsgIDHeader, rand.Text())
		_, err = r.c.publish(ctx, itemsStream(r.id), m)
	}
	if err != nil {
		return fmt.Errorf("publish batch %s: %w", at, err)
	}
	return nil
}

// Drop removes all batches from the queue. Workers that have already taken one may still answer it.
func (r *Run) Drop(ctx context.Context) error {
	if err := r.c.purge(ctx, itemsStream(r.id), subject(r.id, "items", ">")); err != nil {
		return fmt.Errorf("drop batches: %w", err)
	}
	return nil
}

// Result is the answer of a batch.
type Result struct {
	Position
	Data     []byte
	Sequence uint64 // in the order of storage: growing, with gaps
	Worker   string // Options.Name of the process that answered
}

// Answer stores the answer of a batch and waits until it is stored. The first answer of a position stands for the life of the run:
// a later one is dropped, and first is false. It is also false if this answer stands and its acknowledgement was lost.
func (r *Run) Answer(ctx context.Context, at Position, data []byte) (first bool, err error) {
	m, err := r.pack(ctx, resultSubject(r.id, at), data)
	if err == nil {
		m.Header.Set(headerWorker, r.c.name)
		first, err = r.c.publish(ctx, resultsStream(r.id), m)
	}
	if err != nil {
		return false, fmt.Errorf("answer batch %s: %w", at, err)
	}
	return first, nil
}

// Results yields the answers of batches stored after a sequence number (0: all), each once, in the order of storage, and waits
// for more until ctx ends. The end of ctx is no error; after any other error the iteration ends. ErrNoRun: the run was removed.
func (r *Run) Results(ctx context.Context, after uint64) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		for m, err := range r.contents(ctx, resultsStream(r.id), subject(r.id, "results", ">"), after) {
			var result Result
			if err == nil {
				result, err = resultOf(m)
			}
			if !yield(result, err) || err != nil {
				return
			}
		}
	}
}

// resultOf converts a message with whole data.
func resultOf(m *jetstream.RawStreamMsg) (Result, error) {
	at, err := positionOf(m.Subject)
	return Result{Position: at, Data: m.Data, Sequence: m.Sequence, Worker: m.Header.Get(headerWorker)}, err
}

// Result returns the answer of a batch; nil: there is none yet. ErrNoRun: the run was removed.
func (r *Run) Result(ctx context.Context, at Position) (*Result, error) {
	m, err := r.c.last(ctx, resultsStream(r.id), resultSubject(r.id, at))
	if m == nil || err != nil {
		return nil, err
	}
	if m.Data, err = r.unpack(ctx, m); err != nil {
		return nil, err
	}
	result, err := resultOf(m)
	return &result, err
}

// contents is tail with whole data in place of references to pieces.
func (r *Run) contents(ctx context.Context, stream, filter string, after uint64) iter.Seq2[*jetstream.RawStreamMsg, error] {
	return func(yield func(*jetstream.RawStreamMsg, error) bool) {
		for m, err := range r.c.tail(ctx, stream, filter, after) {
			if err == nil {
				m.Data, err = r.unpack(ctx, m)
			}
			if err != nil && ctx.Err() != nil || !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// Stored returns the sequence number of the newest result; 0: there is none.
func (r *Run) Stored(ctx context.Context) (uint64, error) {
	return r.newest(ctx, resultsStream(r.id), subject(r.id, "results", ">"))
}

// newest returns the sequence number of the newest message below a subject; 0: there is none.
func (r *Run) newest(ctx context.Context, stream, filter string) (uint64, error) {
	m, err := r.c.last(ctx, stream, filter)
	if m == nil || err != nil {
		return 0, err
	}
	return m.Sequence, nil
}

// Answered returns the stored answer of a service; nil: there is none.
func (r *Run) Answered(ctx context.Context, key string) (value []byte, err error) {
	m, err := r.c.last(ctx, answersStream(r.id), answerSubject(r.id, key))
	if m != nil && err == nil {
		value, err = r.unpack(ctx, m)
	}
	if err != nil {
		return nil, fmt.Errorf("read answer %s: %w", key, err)
	}
	return value, nil
}

// KeepAnswer stores an answer of a service, and waits until it is stored. It returns the answer
// that counts: the first one of the key, for the life of the run.
func (r *Run) KeepAnswer(ctx context.Context, key string, value []byte) (stands []byte, err error) {
	first := false
	m, err := r.pack(ctx, answerSubject(r.id, key), value)
	if err == nil {
		first, err = r.c.publish(ctx, answersStream(r.id), m)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("keep answer %s: %w", key, err)
	case first:
		return value, nil
	}
	return r.Answered(ctx, key)
}

// pack creates a message from data. It first stores data that is too large for one message in pieces.
func (r *Run) pack(ctx context.Context, subject string, data []byte) (*nats.Msg, error) {
	m := nats.NewMsg(subject)
	if len(data) <= r.c.room() {
		m.Data = data
		return m, nil
	}
	unique := rand.Text()
	count, err := r.c.cut(ctx, resultsStream(r.id), r.pieces(unique), bytes.NewReader(data))
	m.Header.Set(headerPieces, fmt.Sprintf("%s %d %d", unique, count, len(data)))
	return m, err
}

func (r *Run) pieces(unique string) (prefix string) { return subject(r.id, "pieces", unique, "") }

// unpack returns the data of a message, and fetches its pieces if necessary.
func (r *Run) unpack(ctx context.Context, m *jetstream.RawStreamMsg) ([]byte, error) {
	pieces := m.Header.Get(headerPieces)
	if pieces == "" {
		return m.Data, nil
	}
	var unique string
	var count, size int
	if _, err := fmt.Sscanf(pieces, "%s %d %d", &unique, &count, &size); err != nil || strings.ContainsAny(unique, ".*>") {
		return nil, fmt.Errorf("header %s: %q is none", headerPieces, pieces)
	}
	var whole bytes.Buffer
	if err := r.c.join(ctx, resultsStream(r.id), r.pieces(unique), count, &whole); err != nil {
		return nil, err
	}
	if whole.Len() != size {
		return nil, fmt.Errorf("of %d bytes in %d pieces %d are there", size, count, whole.Len())
	}
	return whole.Bytes(), nil
}
