package bus

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/racflow/racflow/sdk/support"

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

// getChunks reads the chunks one by one from the stream's leader, so that a lost connection costs one chunk.
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

// File describes a file at the servers.
type File struct {
	Digest string // SHA-256, hexadecimal
	Size   int64
	At     time.Time // when it was stored
}

const (
	filesStream = "OBJ_" + filesBucket
	filesMeta   = "$O." + filesBucket + ".M."
	filesChunk  = "$O." + filesBucket + ".C."
)

var digestForm = support.Pattern(`^[0-9a-f]{64}$`)

func checkDigest(digest string) error {
	if !digestForm().MatchString(digest) {
		return fmt.Errorf("digest %q: it is a SHA-256 in hexadecimal", digest)
	}
	return nil
}

func metaSubject(digest string) string {
	return filesMeta + base64.URLEncoding.EncodeToString([]byte(digest))
}

// object returns the description of a file; nil: it does not exist.
func (c *Conn) object(ctx context.Context, digest string) (*jetstream.ObjectInfo, error) {
	if err := checkDigest(digest); err != nil {
		return nil, err
	}
	there, err := c.hasStream(ctx, filesStream)
	if err != nil || !there {
		return nil, err
	}
	m, err := c.last(ctx, filesStream, metaSubject(digest))
	if m == nil || err != nil {
		return nil, err
	}
	info := new(jetstream.ObjectInfo)
	if err := json.Unmarshal(m.Data, info); err != nil {
		return nil, fmt.Errorf("file %s: %w", digest, err)
	}
	if info.Deleted {
		return nil, nil
	}
	return info, nil
}

// HasFile reports whether a complete file with this digest exists.
func (c *Conn) HasFile(ctx context.Context, digest string) (bool, error) {
	info, err := c.object(ctx, digest)
	return info != nil, err
}

// PutFile stores a file as a NATS object. The file becomes visible only after all of r has been
// read and its digest matches.
func (c *Conn) PutFile(ctx context.Context, digest string, r io.Reader) error {
	there, err := c.HasFile(ctx, digest)
	if there || err != nil {
		return err
	}
	config := jetstream.StreamConfig{Name: filesStream, Subjects: []string{filesMeta + ">", filesChunk + ">"},
		Discard: jetstream.DiscardNew, AllowRollup: true, Replicas: c.replicas()}
	if err = c.createStream(ctx, config); noPeers(err) {
		config.Replicas = 1
		err = c.createStream(ctx, config)
	}
	if err != nil {
		return fmt.Errorf("store file %s: %w", digest, err)
	}
	unique := rand.Text()
	info, err := c.putChunks(ctx, unique, digest, r)
	if err == nil {
		m := nats.NewMsg(metaSubject(digest))
		m.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
		if m.Data, err = json.Marshal(info); err == nil {
			_, err = c.swap(ctx, filesStream, m, 0, true)
		}
	}
	if err != nil {
		if ctx.Err() == nil {
			_ = c.purge(ctx, filesStream, filesChunk+unique)
		}
		return fmt.Errorf("store file %s: %w", digest, err)
	}
	return nil
}

// GetFile writes a file to w and checks its digest; after an error, discard what was written. ErrNoFile: it does not exist.
func (c *Conn) GetFile(ctx context.Context, digest string, w io.Writer) error {
	info, err := c.object(ctx, digest)
	if err == nil && info == nil {
		err = ErrNoFile
	}
	if err == nil {
		err = c.getChunks(ctx, info, w)
	}
	if err != nil {
		return fmt.Errorf("load file %s: %w", digest, err)
	}
	return nil
}

// RemoveFile removes a file if it exists.
func (c *Conn) RemoveFile(ctx context.Context, digest string) error {
	info, err := c.object(ctx, digest)
	if info == nil || err != nil {
		return err
	}
	if err = c.purge(ctx, filesStream, metaSubject(digest)); err == nil {
		err = c.purge(ctx, filesStream, filesChunk+info.NUID)
	}
	if err != nil {
		return fmt.Errorf("remove file %s: %w", digest, err)
	}
	return nil
}

// Files returns all files at the servers.
func (c *Conn) Files(ctx context.Context) ([]File, error) {
	there, err := c.hasStream(ctx, filesStream)
	if err != nil || !there {
		return nil, err
	}
	entries, err := c.below(ctx, filesStream, filesMeta, "")
	if err != nil {
		return nil, fmt.Errorf("list files: %w", err)
	}
	var files []File
	for _, entry := range entries {
		info := new(jetstream.ObjectInfo)
		if err := json.Unmarshal(entry.Value, info); err != nil {
			return nil, fmt.Errorf("list files: %w", err)
		}
		if !info.Deleted {
			files = append(files, File{Digest: info.Name, Size: int64(info.Size), At: entry.At})
		}
	}
	return files, nil
}

// room returns how many bytes a message may hold beside its headers.
func (c *Conn) room() int { return max(int(c.nc.MaxPayload())-1024, 128) }

// pack creates a message from data. It first stores data that is too large for one message in pieces.
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

// unpack returns the data of a message, and fetches its pieces if necessary.
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

// last returns the newest message of a subject (which may have wildcards) from the stream's leader, since replicas may lag; nil: there is none.
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

// stream returns a cached handle, because creating one asks the servers.
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

// once stores a message unless its subject already has one. mine is false if another message is there.
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
		// An earlier attempt may have been stored although its acknowledgement was lost.
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

// swap stores a message if the newest one of its subject has the given sequence (0: there is none), or unconditionally with any.
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
