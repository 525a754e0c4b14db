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

	"github.com/racflow/racflow/sdk/support"
)

// Position identifies a batch of a run: the part, from 1 (each resumption starts another), and the number in the part, from 1.
type Position struct{ Part, Seq int }

func (p Position) String() string { return fmt.Sprintf("%d.%d", p.Part, p.Seq) }

const (
	indexStream = "KV_racflow_runs"
	indexPrefix = "$KV.racflow_runs."
	filesBucket = "racflow_files"
	consumer    = "workers"

	headerID     = "Racflow-Id"     // unique per publishing, so that a process recognises its own message when it retries
	headerWorker = "Racflow-Worker" // name of the process that answered
	headerPieces = "Racflow-Pieces" // "UNIQUE COUNT SIZE": the data is stored in pieces
	headerKV     = "KV-Operation"   // of NATS buckets
)

const idPattern = `[A-Za-z0-9]{1,64}`

var idForm = support.Pattern(`^` + idPattern + `$`)

func checkID(id string) error {
	if !idForm().MatchString(id) {
		return fmt.Errorf("run ID %q: it has 1 to 64 letters and digits", id)
	}
	return nil
}

func itemsStream(id string) string   { return "racflow_" + id + "_items" }
func resultsStream(id string) string { return "racflow_" + id + "_results" }
func stateStream(id string) string   { return "KV_racflow_" + id }
func answersStream(id string) string { return "KV_racflow_" + id + "_answers" }

// streamNames returns the names of the streams that belong to one run.
func streamNames(id string) []string {
	return []string{itemsStream(id), resultsStream(id), stateStream(id), answersStream(id)}
}

func subject(id string, parts ...string) string {
	return "racflow." + id + "." + strings.Join(parts, ".")
}

func itemSubject(id string, p Position) string   { return subject(id, "items", p.String()) }
func resultSubject(id string, p Position) string { return subject(id, "results", p.String()) }
func statePrefix(id string) string               { return "$KV.racflow_" + id + "." }
func answerSubject(id, key string) string        { return "$KV.racflow_" + id + "_answers.answer." + key }

// positionOf parses the end of a subject.
func positionOf(subject string) (Position, error) {
	tokens := strings.Split(subject, ".")
	if len(tokens) < 2 {
		return Position{}, fmt.Errorf("subject %q has no position", subject)
	}
	part, err := strconv.Atoi(tokens[len(tokens)-2])
	if err != nil {
		return Position{}, fmt.Errorf("subject %q has no position: %w", subject, err)
	}
	seq, err := strconv.Atoi(tokens[len(tokens)-1])
	if err != nil {
		return Position{}, fmt.Errorf("subject %q has no position: %w", subject, err)
	}
	return Position{Part: part, Seq: seq}, nil
}

var keyForm = support.Pattern(`^[-/_=a-zA-Z0-9]+(\.[-/_=a-zA-Z0-9]+)*$`)

func checkKey(key string) error {
	if !keyForm().MatchString(key) || len(key) > 512 {
		return fmt.Errorf("key %q: it has letters, digits and - / _ = in words with single dots between", key)
	}
	return nil
}

// maxWaiting limits how many batches may be requested at the same time: every job of every worker requests one.
const maxWaiting = 32768

// bucket configures a NATS key-value bucket with one value per key, as nats kv shows it. It disables direct reads,
// which replicas that lag would answer, and rollups, with which a user who may write one key could clear all.
func bucket(stream, prefix string, replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{Name: stream, Subjects: []string{prefix + ">"}, MaxMsgsPerSubject: 1,
		Discard: jetstream.DiscardNew, DenyDelete: true, Replicas: replicas}
}

// createStreams creates the streams of a run. By default they have three replicas if the cluster has that many servers.
func (c *Conn) createStreams(ctx context.Context, config Config) error {
	replicas := config.Replicas
	if replicas <= 0 {
		replicas = c.replicas()
	}
	for _, s := range streamsOf(config.ID, replicas) {
		err := c.createStream(ctx, s)
		if noPeers(err) && config.Replicas <= 0 && replicas > 1 {
			config.Replicas = 1
			return c.createStreams(ctx, config)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Conn) replicas() int {
	if c.nc.ConnectedClusterName() != "" {
		return 3
	}
	return 1
}

func streamsOf(id string, replicas int) []jetstream.StreamConfig {
	return []jetstream.StreamConfig{bucket(indexStream, indexPrefix, replicas), bucket(stateStream(id), statePrefix(id), replicas), {
		Name: itemsStream(id), Subjects: []string{subject(id, "items", ">")}, Retention: jetstream.WorkQueuePolicy,
		MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true, Replicas: replicas,
	}, {
		Name: resultsStream(id), Subjects: []string{subject(id, "definition"), subject(id, "results", ">"), subject(id, "pieces", ">")},
		MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true, DenyDelete: true, Replicas: replicas,
	}, {
		Name: answersStream(id), Subjects: []string{answerSubject(id, ">")},
		MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true, DenyDelete: true, Replicas: replicas,
	}}
}

func noPeers(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == codeNoPeers
}

func (c *Conn) createStream(ctx context.Context, config jetstream.StreamConfig) error {
	err := c.patient(ctx, operation{uses: []string{"$JS.API.STREAM.CREATE." + config.Name}, do: func(ctx context.Context, _ bool) error {
		_, err := c.js.CreateStream(ctx, config)
		return err
	}})
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // it exists with another number of replicas
		return nil
	}
	if noPeers(err) {
		return fmt.Errorf("%w: %d servers with JetStream are needed for as many replicas: start them, or ask for fewer replicas", err, config.Replicas)
	}
	return err
}

func (c *Conn) deleteStream(ctx context.Context, name string) error {
	err := c.patient(ctx, operation{uses: []string{"$JS.API.STREAM.DELETE." + name}, do: func(ctx context.Context, _ bool) error {
		err := c.js.DeleteStream(ctx, name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil
		}
		return err
	}})
	c.streams.Delete(name)
	return err
}

// purge removes everything below a subject of a stream. A missing stream is not an error.
func (c *Conn) purge(ctx context.Context, stream, below string) error {
	err := c.patient(ctx, operation{stream: stream, uses: []string{"$JS.API.STREAM.PURGE." + stream, "$JS.API.STREAM.INFO." + stream}, do: func(ctx context.Context, _ bool) error {
		s, err := c.stream(ctx, stream)
		if err == nil {
			err = s.Purge(ctx, jetstream.WithPurgeSubject(below))
		}
		return err
	}})
	if errors.Is(err, ErrNoRun) {
		return nil
	}
	return err
}

// stored is a message of a stream, as tail yields it.
type stored struct {
	subject  string
	header   nats.Header
	data     []byte
	sequence uint64
	at       time.Time
}

const (
	readTime  = 10 * time.Second // of one request for messages
	readAlive = 2 * time.Second  // heartbeat interval meanwhile
	readIdle  = 5 * time.Second  // without a message, before a check for lost ones
	readMost  = 256
	readBytes = 16 << 20
	forgotten = 30 * time.Second // until the servers remove an unused consumer
)

// tail yields the messages of a stream below a subject, after a sequence number, in order and each once, and waits for more until ctx ends.
// It reads through an in-memory consumer that needs no acknowledgements and that the servers may lose at any time. When a sequence number is
// missing, heartbeats stop or the connection is lost, it creates another consumer that starts after the last message.
func (c *Conn) tail(ctx context.Context, stream, filter string, after uint64) iter.Seq2[stored, error] {
	return func(yield func(stored, error) bool) {
		for ctx.Err() == nil {
			reader, err := c.reader(ctx, stream, filter, after)
			if err != nil {
				if ctx.Err() == nil {
					yield(stored{}, err)
				}
				return
			}
			before := after
			if !c.read(ctx, reader, &after, yield) {
				return
			}
			if after == before {
				_ = support.SleepFor(ctx, firstPause)
			}
		}
	}
}

func (c *Conn) reader(ctx context.Context, stream, filter string, after uint64) (reader jetstream.Consumer, err error) {
	config := jetstream.ConsumerConfig{Name: rand.Text(), AckPolicy: jetstream.AckNonePolicy, DeliverPolicy: jetstream.DeliverByStartSequencePolicy,
		OptStartSeq: after + 1, FilterSubject: filter, Replicas: 1, MemoryStorage: true, InactiveThreshold: forgotten, MaxDeliver: 1}
	err = c.patient(ctx, operation{stream: stream, uses: []string{"$JS.API.CONSUMER.CREATE." + stream}, do: func(ctx context.Context, again bool) error {
		if again {
			config.Name = rand.Text()
		}
		reader, err = c.js.CreateConsumer(ctx, stream, config)
		return err
	}})
	return reader, err
}

// read yields messages until some may be lost. It returns false when the caller wants no more.
func (c *Conn) read(ctx context.Context, reader jetstream.Consumer, after *uint64, yield func(stored, error) bool) bool {
	ctx, end := c.connected(ctx)
	defer end()
	messages, err := reader.Messages(jetstream.PullMaxMessagesWithBytesLimit(readMost, readBytes), jetstream.PullExpiry(readTime),
		jetstream.PullHeartbeat(readAlive), jetstream.WithMessagesErrOnMissingHeartbeat(true))
	if err != nil {
		return true
	}
	defer messages.Stop()
	for n := uint64(0); ; {
		next, end := context.WithTimeout(ctx, readIdle)
		m, err := messages.Next(jetstream.NextContext(next))
		end()
		if err != nil {
			if errors.Is(err, context.DeadlineExceeded) && c.whole(ctx, reader, n) {
				continue
			}
			return true
		}
		meta, err := m.Metadata()
		if err != nil || meta.Sequence.Consumer != n+1 {
			return true
		}
		n++
		*after = meta.Sequence.Stream
		if !yield(stored{m.Subject(), m.Headers(), m.Data(), meta.Sequence.Stream, meta.Timestamp}, nil) {
			return false
		}
	}
}

// whole reports whether all sent messages have arrived: messages in flight are lost when servers lose contact with each other.
func (c *Conn) whole(ctx context.Context, reader jetstream.Consumer, n uint64) bool {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	info, err := reader.Info(ctx)
	return err == nil && info.Delivered.Consumer == n && info.NumPending == 0
}
