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

// createStreams makes what a run needs, with three replicas where the cluster has as many servers, unless told otherwise.
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
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // made with other replicas
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

// purge removes what lies below a subject of a stream. A stream that is not there has nothing.
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
