package bus

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// last reads the newest message of a subject (which may have wildcards) from the stream's leader: replicas may lag. It is nil where there is none.
func (c *Conn) last(ctx context.Context, stream, subject string) (*jetstream.RawStreamMsg, error) {
	var found *jetstream.RawStreamMsg
	err := c.patient(ctx, operation{stream: stream, uses: []string{"$JS.API.STREAM.INFO." + stream, "$JS.API.STREAM.MSG.GET." + stream},
		do: func(ctx context.Context, _ bool) error {
			s, err := c.stream(ctx, stream)
			if err != nil {
				return err
			}
			found, err = s.GetLastMsgForSubject(ctx, subject)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				found, err = nil, nil
			}
			return err
		}})
	return found, err
}

// stream is a handle, kept: making one asks the servers.
func (c *Conn) stream(ctx context.Context, name string) (jetstream.Stream, error) {
	if kept, ok := c.streams.Load(name); ok {
		return kept.(jetstream.Stream), nil
	}
	s, err := c.js.Stream(ctx, name)
	if err == nil {
		c.streams.Store(name, s)
	}
	return s, err
}

// once stores a message unless another lies at its subject. mine is false if another does.
func (c *Conn) once(ctx context.Context, stream string, m *nats.Msg) (mine bool, err error) {
	id := rand.Text()
	m.Header.Set(headerID, id)
	err = c.patient(ctx, operation{stream: stream, uses: []string{m.Subject}, do: func(ctx context.Context, again bool) error {
		_, err := c.js.PublishMsg(ctx, m, jetstream.WithRetryAttempts(0))
		if !taken(err) {
			mine = err == nil
			return err
		}
		if !again {
			return nil
		}
		// An earlier attempt may have been stored though its acknowledgement did not arrive.
		s, err := c.stream(ctx, stream)
		if err != nil {
			return err
		}
		stands, err := s.GetLastMsgForSubject(ctx, m.Subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		mine = err == nil && stands.Header.Get(headerID) == id
		return err
	}})
	return mine, err
}

// swap stores a message if the newest of its subject has this sequence (0: there is none); any: whatever there is.
func (c *Conn) swap(ctx context.Context, stream string, m *nats.Msg, sequence uint64, any bool) (stored uint64, err error) {
	options := []jetstream.PublishOpt{jetstream.WithRetryAttempts(0)}
	if !any {
		options = append(options, jetstream.WithExpectLastSequencePerSubject(sequence))
	}
	id := rand.Text()
	m.Header.Set(headerID, id)
	err = c.patient(ctx, operation{stream: stream, uses: []string{m.Subject}, do: func(ctx context.Context, again bool) error {
		ack, err := c.js.PublishMsg(ctx, m, options...)
		if err == nil {
			stored = ack.Sequence
			return nil
		}
		if !wrongSequence(err) {
			return err
		}
		if !again {
			return ErrRevision
		}
		s, err := c.stream(ctx, stream)
		if err != nil {
			return err
		}
		switch stands, err := s.GetLastMsgForSubject(ctx, m.Subject); {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			return ErrRevision
		case err != nil:
			return err
		case stands.Header.Get(headerID) != id:
			return ErrRevision
		default:
			stored = stands.Sequence
			return nil
		}
	}})
	return stored, err
}

func wrongSequence(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}
