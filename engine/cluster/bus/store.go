package bus

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"

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

// room is what a message may hold beside its headers.
func (c *Conn) room() int { return max(int(c.nc.MaxPayload())-1024, 128) }

// pack makes a message of data. What is too large for one is stored in pieces first.
func (r *Run) pack(ctx context.Context, subject string, data []byte) (*nats.Msg, error) {
	m := nats.NewMsg(subject)
	room := r.c.room()
	if len(data) <= room {
		m.Data = data
		return m, nil
	}
	unique, count := rand.Text(), 0
	for rest := data; len(rest) > 0; count++ {
		n := min(room, len(rest))
		piece := nats.NewMsg(pieceSubject(r.id, unique, count))
		piece.Data = rest[:n]
		if _, err := r.c.once(ctx, resultsStream(r.id), piece); err != nil {
			return nil, err
		}
		rest = rest[n:]
	}
	m.Header.Set(headerPieces, fmt.Sprintf("%s %d %d", unique, count, len(data)))
	return m, nil
}

// unpack is the data of a message, wherever they lie.
func (r *Run) unpack(ctx context.Context, header nats.Header, data []byte) ([]byte, error) {
	pieces := header.Get(headerPieces)
	if pieces == "" {
		return data, nil
	}
	var unique string
	var count, size int
	if _, err := fmt.Sscanf(pieces, "%s %d %d", &unique, &count, &size); err != nil || strings.ContainsAny(unique, ".*>") {
		return nil, fmt.Errorf("header %s: %q is none", headerPieces, pieces)
	}
	var whole bytes.Buffer
	for i := range count {
		piece, err := r.c.last(ctx, resultsStream(r.id), pieceSubject(r.id, unique, i))
		if err != nil {
			return nil, err
		}
		if piece == nil || whole.Len()+len(piece.Data) > size {
			break
		}
		whole.Write(piece.Data)
	}
	if whole.Len() != size {
		return nil, fmt.Errorf("of %d bytes in %d pieces %d are there: something at the servers removed some", size, count, whole.Len())
	}
	return whole.Bytes(), nil
}

func pieceSubject(id, unique string, i int) string {
	return subject(id, "pieces", unique, strconv.Itoa(i))
}
