package bus

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/racflow/racflow/sdk/support"
)

// Position identifies a batch of a run: the part, which keeps batches of different origin apart, and the number in the part, both from 1.
type Position struct{ Part, Seq int }

func (p Position) String() string { return fmt.Sprintf("%d.%d", p.Part, p.Seq) }

const (
	index     = "racflow_runs"  // bucket
	files     = "racflow_files" // bucket
	consumer  = "workers"
	keyPrefix = "$KV."
	kvStream  = "KV_"

	headerWorker = "Racflow-Worker" // name of the process that answered
	headerPieces = "Racflow-Pieces" // "UNIQUE COUNT SIZE": the data is stored in pieces
	headerKV     = "KV-Operation"   // of NATS buckets
)

var idForm = support.Pattern(`^[A-Za-z0-9]{1,64}$`)

func checkID(id string) error {
	if !idForm().MatchString(id) {
		return fmt.Errorf("run ID %q: it has 1 to 64 letters and digits", id)
	}
	return nil
}

func itemsStream(id string) string   { return "racflow_" + id + "_items" }
func resultsStream(id string) string { return "racflow_" + id + "_results" }
func stateBucket(id string) string   { return "racflow_" + id }
func answersStream(id string) string { return kvStream + "racflow_" + id + "_answers" }

func subject(id string, parts ...string) string {
	return "racflow." + id + "." + strings.Join(parts, ".")
}

func itemSubject(id string, p Position) string   { return subject(id, "items", p.String()) }
func resultSubject(id string, p Position) string { return subject(id, "results", p.String()) }
func keySubject(bucket, key string) string       { return keyPrefix + bucket + "." + key }
func answerSubject(id, key string) string        { return keySubject("racflow_"+id+"_answers", "answer."+key) }

// positionOf parses the end of a subject.
func positionOf(subject string) (p Position, err error) {
	tokens := strings.Split(subject, ".")
	if len(tokens) > 2 {
		if _, err = fmt.Sscanf(strings.Join(tokens[len(tokens)-2:], " "), "%d %d", &p.Part, &p.Seq); err == nil {
			return p, nil
		}
	}
	return p, fmt.Errorf("subject %q has no position", subject)
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

// bucketConfig configures a NATS key-value bucket with one value per key. Unlike that of nats.go it disables direct reads,
// which replicas that lag would answer, and rollups, with which a user who may write one key could clear all.
func bucketConfig(bucket string) jetstream.StreamConfig {
	return jetstream.StreamConfig{Name: kvStream + bucket, Subjects: []string{keySubject(bucket, ">")}, MaxMsgsPerSubject: 1,
		Discard: jetstream.DiscardNew, DenyDelete: true}
}

// firstStands makes a stream reject a message to a subject that has one.
func firstStands(config jetstream.StreamConfig) jetstream.StreamConfig {
	config.MaxMsgsPerSubject, config.Discard, config.DiscardNewPerSubject = 1, jetstream.DiscardNew, true
	return config
}

// streamsOf returns the streams of one run.
func streamsOf(id string) []jetstream.StreamConfig {
	return []jetstream.StreamConfig{
		firstStands(jetstream.StreamConfig{Name: itemsStream(id), Subjects: []string{subject(id, "items", ">")}, Retention: jetstream.WorkQueuePolicy}),
		firstStands(jetstream.StreamConfig{Name: resultsStream(id), DenyDelete: true,
			Subjects: []string{subject(id, "definition"), subject(id, "results", ">"), subject(id, "pieces", ">")}}),
		bucketConfig(stateBucket(id)),
		firstStands(jetstream.StreamConfig{Name: answersStream(id), Subjects: []string{answerSubject(id, ">")}, DenyDelete: true}),
	}
}

// createStream creates a stream unless it exists. Without a number of replicas it has three if the cluster has that many servers.
func (c *Conn) createStream(ctx context.Context, config jetstream.StreamConfig, replicas int) error {
	config.Replicas = replicas
	if replicas <= 0 {
		if config.Replicas = 1; c.nc.ConnectedClusterName() != "" {
			config.Replicas = 3
		}
	}
	err := c.try(ctx, "", func(ctx context.Context) error {
		_, err := c.js.CreateStream(ctx, config)
		return err
	})
	switch {
	case errors.Is(err, jetstream.ErrStreamNameAlreadyInUse): // it exists with another number of replicas
		return nil
	case noPeers(err) && replicas <= 0 && config.Replicas > 1:
		return c.createStream(ctx, config, 1)
	case noPeers(err):
		return fmt.Errorf("%w: %d servers with JetStream are needed for as many replicas: start them, or ask for fewer replicas", err, config.Replicas)
	}
	return err
}

// handle returns a cached handle, because creating one asks the servers.
func handle[T any](ctx context.Context, c *Conn, name string, create func(context.Context, string) (T, error)) (T, error) {
	if kept, ok := c.handles.Load(name); ok {
		return kept.(T), nil
	}
	made, err := create(ctx, name)
	if err == nil {
		c.handles.Store(name, made)
	}
	return made, err
}

// on carries out an operation on a stream.
func (c *Conn) on(ctx context.Context, stream string, do func(context.Context, jetstream.Stream) error) error {
	return c.try(ctx, stream, func(ctx context.Context) error {
		s, err := handle(ctx, c, stream, c.js.Stream)
		if err != nil {
			return err
		}
		return do(ctx, s)
	})
}

// bucket carries out an operation on a bucket.
func (c *Conn) bucket(ctx context.Context, name string, do func(context.Context, jetstream.KeyValue) error) error {
	return c.try(ctx, kvStream+name, func(ctx context.Context) error {
		kv, err := handle(ctx, c, name, c.js.KeyValue)
		if err != nil {
			return err
		}
		return do(ctx, kv)
	})
}

// purge removes everything below a subject of a stream. A missing stream is not an error.
func (c *Conn) purge(ctx context.Context, stream, below string) error {
	err := c.on(ctx, stream, func(ctx context.Context, s jetstream.Stream) error {
		return s.Purge(ctx, jetstream.WithPurgeSubject(below))
	})
	if errors.Is(err, ErrNoRun) {
		return nil
	}
	return err
}

// last returns the newest message of a subject, which may have wildcards; nil: there is none.
func (c *Conn) last(ctx context.Context, stream, subject string) (found *jetstream.RawStreamMsg, err error) {
	err = c.on(ctx, stream, func(ctx context.Context, s jetstream.Stream) (err error) {
		found, err = s.GetLastMsgForSubject(ctx, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			found, err = nil, nil
		}
		return err
	})
	return found, err
}

// publish stores a message. It returns false if the stream rejects it because its subject has one already, which may be
// this very message if an acknowledgement was lost.
func (c *Conn) publish(ctx context.Context, stream string, m *nats.Msg) (first bool, err error) {
	err = c.try(ctx, stream, func(ctx context.Context) error {
		_, err := c.js.PublishMsg(ctx, m, jetstream.WithRetryAttempts(0))
		if first = err == nil; taken(err) {
			return nil
		}
		return err
	})
	return first, err
}

// room returns how many bytes a message may hold beside its headers.
func (c *Conn) room() int { return max(int(c.nc.MaxPayload())-1024, 128) }

// cut stores what r yields in pieces, the subjects of which have the numbers from 0 behind the prefix, and returns their number.
func (c *Conn) cut(ctx context.Context, stream, prefix string, r io.Reader) (count int, err error) {
	for piece := make([]byte, c.room()); ; count++ {
		n, err := io.ReadFull(r, piece)
		if errors.Is(err, io.EOF) {
			return count, nil
		}
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return count, err
		}
		if _, err := c.publish(ctx, stream, &nats.Msg{Subject: prefix + strconv.Itoa(count), Data: piece[:n]}); err != nil {
			return count, err
		}
	}
}

// join writes pieces to w.
func (c *Conn) join(ctx context.Context, stream, prefix string, count int, w io.Writer) error {
	for i := range count {
		piece, err := c.last(ctx, stream, prefix+strconv.Itoa(i))
		if err != nil {
			return err
		}
		if piece == nil {
			return fmt.Errorf("of %d pieces, number %d is not there: it was removed at the servers", count, i)
		}
		if _, err := w.Write(piece.Data); err != nil {
			return err
		}
	}
	return nil
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
// It reads through an in-memory consumer that needs no acknowledgements and that the servers may lose at any time. When a message or the
// consumer may be lost, it creates another one that starts after the last message.
func (c *Conn) tail(ctx context.Context, stream, filter string, after uint64) iter.Seq2[*jetstream.RawStreamMsg, error] {
	return func(yield func(*jetstream.RawStreamMsg, error) bool) {
		for more := true; more && ctx.Err() == nil; {
			var reader jetstream.Consumer
			err := c.try(ctx, stream, func(ctx context.Context) (err error) {
				reader, err = c.js.CreateConsumer(ctx, stream, jetstream.ConsumerConfig{
					Name: rand.Text(), AckPolicy: jetstream.AckNonePolicy, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: after + 1,
					FilterSubject: filter, Replicas: 1, MemoryStorage: true, InactiveThreshold: forgotten, MaxDeliver: 1})
				return err
			})
			if err != nil {
				if ctx.Err() == nil {
					yield(nil, err)
				}
				return
			}
			more = c.read(ctx, reader, func(m *jetstream.RawStreamMsg) bool {
				after = m.Sequence
				return yield(m, nil)
			}) && support.SleepFor(ctx, firstPause) == nil
		}
	}
}

// read yields messages until some may be lost. It returns false when the caller wants no more.
func (c *Conn) read(ctx context.Context, reader jetstream.Consumer, yield func(*jetstream.RawStreamMsg) bool) bool {
	ctx, end := c.interruptible(ctx)
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
		if !yield(&jetstream.RawStreamMsg{Subject: m.Subject(), Header: m.Headers(), Data: m.Data(), Sequence: meta.Sequence.Stream, Time: meta.Timestamp}) {
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
