package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// maxWaiting is how many batches may be asked for at the same time: every job of every worker asks for one.
const maxWaiting = 32768

// bucket is a key-value bucket of NATS with one value for a key, as nats kv shows it. It is made without direct reading, which any
// replica answers, be it behind or not; and without rollups, by which whoever may write one key could clear all.
func bucket(stream, prefix string, replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{Name: stream, Subjects: []string{prefix + ">"}, MaxMsgsPerSubject: 1,
		Discard: jetstream.DiscardNew, DenyDelete: true, Replicas: replicas}
}

func (c *Conn) createStream(ctx context.Context, config jetstream.StreamConfig) error {
	err := c.patient(ctx, operation{uses: []string{"$JS.API.STREAM.CREATE." + config.Name}, do: func(ctx context.Context, _ bool) error {
		_, err := c.js.CreateStream(ctx, config)
		return err
	}})
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // made with other replicas
		return nil
	}
	var api *jetstream.APIError
	if errors.As(err, &api) && api.ErrorCode == codeNoPeers {
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

// purge removes what lies below a subject of a stream. A stream that is not there has nothing.
func (c *Conn) purge(ctx context.Context, stream, below string) error {
	return c.patient(ctx, operation{uses: []string{"$JS.API.STREAM.PURGE." + stream, "$JS.API.STREAM.INFO." + stream}, do: func(ctx context.Context, _ bool) error {
		s, err := c.stream(ctx, stream)
		if err == nil {
			err = s.Purge(ctx, jetstream.WithPurgeSubject(below))
		}
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil
		}
		return err
	}})
}
