package bus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/racflow/racflow/sdk/support"
)

// File describes a file at the servers.
type File struct {
	Digest string    // SHA-256, hexadecimal
	At     time.Time // when it was stored
}

var digestForm = support.Pattern(`^[0-9a-f]{64}$`)

func checkDigest(digest string) error {
	if !digestForm().MatchString(digest) {
		return fmt.Errorf("digest %q: it is a SHA-256 in hexadecimal", digest)
	}
	return nil
}

// A file has the keys DIGEST.NUMBER for its pieces, and DIGEST.file, which has the number of pieces, or nothing while they are
// being stored.
const fileKey = ".file"

// file returns the number of pieces of a file; -1: it does not exist, or not all of it.
func (c *Conn) file(ctx context.Context, digest string) (pieces int, err error) {
	if err := checkDigest(digest); err != nil {
		return -1, err
	}
	m, err := c.last(ctx, kvStream+files, keySubject(files, digest+fileKey))
	switch {
	case errors.Is(err, ErrNoRun), err == nil && (m == nil || len(m.Data) == 0):
		return -1, nil
	case err != nil:
		return -1, err
	}
	return strconv.Atoi(string(m.Data))
}

// HasFile reports whether a complete file with this digest exists.
func (c *Conn) HasFile(ctx context.Context, digest string) (bool, error) {
	pieces, err := c.file(ctx, digest)
	return pieces >= 0 && err == nil, err
}

// PutFile stores a file. It becomes visible only after all of r has been read and its digest matches.
func (c *Conn) PutFile(ctx context.Context, digest string, r io.Reader) error {
	there, err := c.HasFile(ctx, digest)
	if there || err != nil {
		return err
	}
	if err = c.createStream(ctx, bucketConfig(files), 0); err == nil {
		err = c.putFile(ctx, digest, r)
	}
	if err != nil {
		return fmt.Errorf("store file %s: %w", digest, err)
	}
	return nil
}

func (c *Conn) putFile(ctx context.Context, digest string, r io.Reader) error {
	if _, err := c.swap(ctx, files, digest+fileKey, nil, 0); err != nil && !errors.Is(err, ErrRevision) {
		return err
	}
	sum := sha256.New()
	pieces, err := c.cut(ctx, kvStream+files, keySubject(files, digest+"."), io.TeeReader(r, sum))
	if err != nil {
		return err
	}
	if found := hex.EncodeToString(sum.Sum(nil)); found != digest {
		return fmt.Errorf("what was read has the digest %s: it was changed meanwhile", found)
	}
	_, err = c.publish(ctx, kvStream+files, &nats.Msg{Subject: keySubject(files, digest+fileKey), Data: strconv.AppendInt(nil, int64(pieces), 10)})
	return err
}

// GetFile writes a file to w and checks its digest; after an error, discard what was written. ErrNoFile: it does not exist.
func (c *Conn) GetFile(ctx context.Context, digest string, w io.Writer) error {
	pieces, err := c.file(ctx, digest)
	if err == nil && pieces < 0 {
		err = ErrNoFile
	}
	sum := sha256.New()
	if err == nil {
		err = c.join(ctx, kvStream+files, keySubject(files, digest+"."), pieces, io.MultiWriter(sum, w))
	}
	if found := hex.EncodeToString(sum.Sum(nil)); err == nil && found != digest {
		err = fmt.Errorf("it has the digest %s: what the servers keep is damaged: remove it there", found)
	}
	if err != nil {
		return fmt.Errorf("load file %s: %w", digest, err)
	}
	return nil
}

// RemoveFile removes a file if it exists.
func (c *Conn) RemoveFile(ctx context.Context, digest string) error {
	err := checkDigest(digest)
	if err == nil {
		err = c.purge(ctx, kvStream+files, keySubject(files, digest+".*"))
	}
	if err != nil {
		return fmt.Errorf("remove file %s: %w", digest, err)
	}
	return nil
}

// Files returns all files at the servers, also those that are being stored.
func (c *Conn) Files(ctx context.Context) ([]File, error) {
	entries, err := c.all(ctx, kvStream+files, keySubject(files, "*"+fileKey))
	if errors.Is(err, ErrNoRun) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list files: %w", err)
	}
	all := make([]File, len(entries))
	for i, m := range entries {
		all[i] = File{strings.TrimSuffix(m.Subject[len(keySubject(files, "")):], fileKey), m.Time}
	}
	return all, nil
}
