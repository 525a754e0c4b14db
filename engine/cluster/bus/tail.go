package bus

import (
	"context"
	"crypto/rand"
	"errors"
	"iter"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/racflow/racflow/sdk/support"
)

// stored is a message of a stream, as tail gives it.
type stored struct {
	subject  string
	header   nats.Header
	data     []byte
	sequence uint64
	at       time.Time
}

const (
	readTime  = 10 * time.Second // one request for messages
	readAlive = 2 * time.Second  // signs of life meanwhile
	readIdle  = 5 * time.Second  // without a message: has one been lost?
	readMost  = 256
	readBytes = 16 << 20
	forgotten = 30 * time.Second // a consumer that nobody reads from
)

// tail gives the messages of a stream below a subject, after a sequence, in their order and each once, and waits for more until ctx
// ends. It reads through a consumer that the servers may lose at any time, in memory and without acknowledgements: whenever a number is
// left out, signs of life stop or the connection is lost it makes another, from the last message on.
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

// read gives messages until something may be lost, and false where nobody wants more.
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

// whole says whether all arrived that was sent: where servers lose each other for a moment, what was under way between them is gone.
func (c *Conn) whole(ctx context.Context, reader jetstream.Consumer, n uint64) bool {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	info, err := reader.Info(ctx)
	return err == nil && info.Delivered.Consumer == n && info.NumPending == 0
}
