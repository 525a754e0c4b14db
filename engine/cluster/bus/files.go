package bus

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// File is a file at the servers.
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

var digestForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

func checkDigest(digest string) error {
	if !digestForm.MatchString(digest) {
		return fmt.Errorf("digest %q: it is a SHA-256 in hexadecimal", digest)
	}
	return nil
}

func metaSubject(digest string) string {
	return filesMeta + base64.URLEncoding.EncodeToString([]byte(digest))
}

// object is what is known of a file: nil where it is not there.
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

// HasFile says whether a whole file of this digest is there.
func (c *Conn) HasFile(ctx context.Context, digest string) (bool, error) {
	info, err := c.object(ctx, digest)
	return info != nil, err
}

// PutFile stores a file, in the form of NATS' object stores. It is there as a whole or not at all: when all has been read, and its
// digest is this one.
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

// GetFile writes a file and checks its digest: where that fails, what was written is worth nothing. ErrNoFile: it is not there.
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

// RemoveFile removes a file, which may not be there.
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

// Files are all files at the servers.
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
