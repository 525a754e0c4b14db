package bus

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
)

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
