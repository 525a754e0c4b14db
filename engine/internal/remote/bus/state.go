package bus

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// State is the value of a key.
type State struct {
	Value []byte
	At    time.Time // when it was stored, by the servers' clock
}

// Get reads a key; a missing one yields nil, 0, nil.
func (r *Run) Get(ctx context.Context, key string) (value []byte, revision uint64, err error) {
	err = r.keys(ctx, "read", key, func(ctx context.Context, kv jetstream.KeyValue) error {
		entry, err := kv.Get(ctx, key)
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			return nil
		}
		if err == nil {
			value, revision = notNil(entry.Value()), entry.Revision()
		}
		return err
	})
	return value, revision, err
}

func notNil(data []byte) []byte { return append([]byte{}, data...) }

// Put writes a key unconditionally. A value must fit into one message of the servers (max_payload).
func (r *Run) Put(ctx context.Context, key string, value []byte) (revision uint64, err error) {
	err = r.keys(ctx, "write", key, func(ctx context.Context, kv jetstream.KeyValue) (err error) {
		revision, err = kv.Put(ctx, key, value)
		return err
	})
	return revision, err
}

// Delete removes a key if it exists.
func (r *Run) Delete(ctx context.Context, key string) error {
	return r.keys(ctx, "delete", key, func(ctx context.Context, kv jetstream.KeyValue) error { return kv.Delete(ctx, key) })
}

func (r *Run) keys(ctx context.Context, verb, key string, do func(context.Context, jetstream.KeyValue) error) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if err := r.c.bucket(ctx, stateBucket(r.id), do); err != nil {
		return fmt.Errorf("%s %s: %w", verb, key, err)
	}
	return nil
}

// Swap writes a key if it has the given revision; 0: if it does not exist. ErrRevision: it has another one. If it has this
// very value meanwhile, an earlier attempt has written it: values of different processes must differ.
func (r *Run) Swap(ctx context.Context, key string, value []byte, revision uint64) (stored uint64, err error) {
	if err = checkKey(key); err == nil {
		stored, err = r.c.swap(ctx, stateBucket(r.id), key, value, revision)
	}
	if err != nil {
		return 0, fmt.Errorf("write %s: %w", key, err)
	}
	return stored, nil
}

func (c *Conn) swap(ctx context.Context, bucket, key string, value []byte, revision uint64) (stored uint64, err error) {
	err = c.bucket(ctx, bucket, func(ctx context.Context, kv jetstream.KeyValue) (err error) {
		if revision == 0 {
			stored, err = kv.Create(ctx, key, value)
		} else {
			stored, err = kv.Update(ctx, key, value, revision)
		}
		if !isAny(err, jetstream.ErrKeyExists, jetstream.ErrKeyRevisionMismatch) {
			return err
		}
		entry, err := kv.Get(ctx, key)
		switch {
		case errors.Is(err, jetstream.ErrKeyNotFound):
			return ErrRevision
		case err != nil:
			return err
		case entry.Revision() <= revision || !bytes.Equal(entry.Value(), value):
			return ErrRevision
		}
		stored = entry.Revision()
		return nil
	})
	return stored, err
}

// All returns the keys that begin with a prefix, which ends in a dot or is empty, or the one key, and their values.
func (r *Run) All(ctx context.Context, prefix string) (map[string]State, error) {
	found, err := r.c.all(ctx, kvStream+stateBucket(r.id), keySubject(stateBucket(r.id), below(prefix)))
	if err != nil {
		return nil, fmt.Errorf("read %s*: %w", prefix, err)
	}
	all := map[string]State{}
	for _, m := range found {
		all[m.Subject[len(keySubject(stateBucket(r.id), "")):]] = State{Value: notNil(m.Data), At: m.Time}
	}
	return all, nil
}

// below returns a server-side filter for keys.
func below(prefix string) string {
	if prefix == "" || strings.HasSuffix(prefix, ".") {
		return prefix + ">"
	}
	return prefix
}

// all returns the messages of a stream below a subject, in the order of storage and without deleted keys. It reads them one by
// one from the leader, because a consumer may read from a replica that lags.
func (c *Conn) all(ctx context.Context, stream, filter string) ([]*jetstream.RawStreamMsg, error) {
	var subjects map[string]uint64
	err := c.on(ctx, stream, func(ctx context.Context, s jetstream.Stream) error {
		info, err := s.Info(ctx, jetstream.WithSubjectFilter(filter))
		if err == nil {
			subjects = info.State.Subjects
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var all []*jetstream.RawStreamMsg
	for _, subject := range slices.Sorted(maps.Keys(subjects)) {
		m, err := c.last(ctx, stream, subject)
		if err != nil {
			return nil, err
		}
		if m != nil && m.Header.Get(headerKV) == "" {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b *jetstream.RawStreamMsg) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return all, nil
}
