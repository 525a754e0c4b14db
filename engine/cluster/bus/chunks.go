package bus

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const chunkSize = 1 << 20

func (c *Conn) putChunks(ctx context.Context, unique, digest string, r io.Reader) (*jetstream.ObjectInfo, error) {
	info := &jetstream.ObjectInfo{ObjectMeta: jetstream.ObjectMeta{Name: digest}, Bucket: filesBucket, NUID: unique, ModTime: time.Now().UTC()}
	sum, chunk, sequence := sha256.New(), make([]byte, min(chunkSize, c.room())), uint64(0)
	for {
		n, err := io.ReadFull(r, chunk)
		if n > 0 {
			sum.Write(chunk[:n])
			m := nats.NewMsg(filesChunk + unique)
			m.Data = chunk[:n]
			if sequence, err = c.swap(ctx, filesStream, m, sequence, false); err != nil {
				return nil, err
			}
			info.Size, info.Chunks = info.Size+uint64(n), info.Chunks+1
			if n == len(chunk) {
				continue
			}
			err = io.EOF
		}
		if !errors.Is(err, io.EOF) {
			return nil, err
		}
		break
	}
	if found := hexadecimal(sum); found != digest {
		return nil, fmt.Errorf("what was read has the digest %s: it was changed meanwhile", found)
	}
	info.Digest = "SHA-256=" + base64.URLEncoding.EncodeToString(sum.Sum(nil))
	return info, nil
}

// getChunks reads one chunk after another from the stream's leader, so that a lost connection costs one.
func (c *Conn) getChunks(ctx context.Context, info *jetstream.ObjectInfo, w io.Writer) error {
	sum, next := sha256.New(), uint64(1)
	for range info.Chunks {
		var m *jetstream.RawStreamMsg
		err := c.patient(ctx, operation{stream: filesStream, uses: []string{"$JS.API.STREAM.INFO." + filesStream, "$JS.API.STREAM.MSG.GET." + filesStream},
			do: func(ctx context.Context, _ bool) error {
				s, err := c.stream(ctx, filesStream)
				if err == nil {
					m, err = s.GetMsg(ctx, next, jetstream.WithGetMsgSubject(filesChunk+info.NUID))
				}
				return err
			}})
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return fmt.Errorf("a part of it is not there: it was removed meanwhile, or what the servers keep is damaged: remove it there")
		}
		if err != nil {
			return err
		}
		next = m.Sequence + 1
		sum.Write(m.Data)
		if _, err := w.Write(m.Data); err != nil {
			return err
		}
	}
	if found := hexadecimal(sum); found != info.Name {
		return fmt.Errorf("it has the digest %s: what the servers keep is damaged: remove it there", found)
	}
	return nil
}

func hexadecimal(sum hash.Hash) string { return hex.EncodeToString(sum.Sum(nil)) }
