package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/sdk/support"
)

// lookAgain is how often Watch checks whether a first run exists.
const lookAgain = 500 * time.Millisecond

func (c *Conn) entry(ctx context.Context, id string) (*jetstream.RawStreamMsg, error) {
	there, err := c.hasStream(ctx, indexStream)
	if err != nil || !there {
		return nil, err
	}
	return c.last(ctx, indexStream, indexPrefix+id)
}

// unlist removes a run from the index. It leaves no marker, since there may be thousands of runs.
func (c *Conn) unlist(ctx context.Context, id string) error {
	return c.purge(ctx, indexStream, indexPrefix+id)
}

// Listed reports whether the index has a run. The run's streams may be missing for a while, because
// servers that have just started may not know them yet.
func (c *Conn) Listed(ctx context.Context, id string) (bool, error) {
	entry, err := c.entry(ctx, id)
	return entry != nil, err
}

// hasStream reports whether a stream exists. It asks the servers several times before it returns false.
func (c *Conn) hasStream(ctx context.Context, name string) (bool, error) {
	err := c.patient(ctx, operation{stream: name, uses: []string{"$JS.API.STREAM.INFO." + name}, do: func(ctx context.Context, _ bool) error {
		_, err := c.stream(ctx, name)
		return err
	}})
	if errors.Is(err, ErrNoRun) {
		return false, nil
	}
	return err == nil, err
}

// Runs returns the IDs of the existing runs, oldest first.
func (c *Conn) Runs(ctx context.Context) ([]string, error) {
	there, err := c.hasStream(ctx, indexStream)
	if err != nil || !there {
		return nil, err
	}
	entries, err := c.below(ctx, indexStream, indexPrefix, "")
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	ids := make([]string, 0, len(entries))
	for id := range entries {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(entries[a].Revision, entries[b].Revision) })
	return ids, nil
}

// Watch sends the IDs of the existing runs, oldest first, and of new ones, until ctx ends; then it
// closes the channel. A run may be over or removed before its ID is read.
func (c *Conn) Watch(ctx context.Context) (<-chan string, error) {
	there, err := c.hasStream(ctx, indexStream)
	if err != nil {
		return nil, err
	}
	ids := make(chan string)
	go func() {
		defer close(ids)
		var after uint64
		for ctx.Err() == nil {
			if there {
				after = c.watch(ctx, after, ids)
			}
			// Only a first caller creates the index; a watcher lacks the permission.
			_ = support.SleepFor(ctx, lookAgain)
			there = !c.absent(ctx, indexStream)
		}
	}()
	return ids, nil
}

func (c *Conn) watch(ctx context.Context, after uint64, ids chan<- string) uint64 {
	for m, err := range c.tail(ctx, indexStream, indexPrefix+">", after) {
		if err != nil {
			if ctx.Err() == nil {
				c.log.Warn("runs cannot be watched", "err", err)
			}
			return 0
		}
		after = m.sequence
		select {
		case ids <- strings.TrimPrefix(m.subject, indexPrefix):
		case <-ctx.Done():
			return after
		}
	}
	return after
}

// State is the value of a key.
type State struct {
	Value    []byte
	At       time.Time // when it was stored, by the servers' clock
	Revision uint64
}

// Get reads a key; a missing one yields nil, 0, nil.
func (r *Run) Get(ctx context.Context, key string) (value []byte, revision uint64, err error) {
	if err := checkKey(key); err != nil {
		return nil, 0, err
	}
	m, err := r.c.last(ctx, stateStream(r.id), statePrefix(r.id)+key)
	if err != nil {
		return nil, 0, fmt.Errorf("read %s: %w", key, err)
	}
	if m == nil || m.Header.Get(headerKV) != "" {
		return nil, 0, nil
	}
	return notNil(m.Data), m.Sequence, nil
}

func notNil(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

// Put writes a key unconditionally. A value must fit into one message of the servers (max_payload).
func (r *Run) Put(ctx context.Context, key string, value []byte) (revision uint64, err error) {
	return r.write(ctx, key, value, 0, true)
}

// Swap writes a key if it has the given revision; 0: if it does not exist. ErrRevision: it has another one.
func (r *Run) Swap(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	written, err := r.write(ctx, key, value, revision, false)
	if revision != 0 || !errors.Is(err, ErrRevision) {
		return written, err
	}
	m, err := r.c.last(ctx, stateStream(r.id), statePrefix(r.id)+key)
	if err != nil {
		return 0, fmt.Errorf("write %s: %w", key, err)
	}
	if m == nil || m.Header.Get(headerKV) == "" {
		return 0, fmt.Errorf("write %s: %w", key, ErrRevision)
	}
	return r.write(ctx, key, value, m.Sequence, false) // a deleted key has its own revision
}

func (r *Run) write(ctx context.Context, key string, value []byte, revision uint64, any bool) (uint64, error) {
	if err := checkKey(key); err != nil {
		return 0, err
	}
	m := nats.NewMsg(statePrefix(r.id) + key)
	m.Data = value
	stored, err := r.c.swap(ctx, stateStream(r.id), m, revision, any)
	if err != nil {
		return 0, fmt.Errorf("write %s: %w", key, err)
	}
	return stored, nil
}

// Delete removes a key if it exists.
func (r *Run) Delete(ctx context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	m := nats.NewMsg(statePrefix(r.id) + key)
	m.Header.Set(headerKV, "DEL")
	if _, err := r.c.swap(ctx, stateStream(r.id), m, 0, true); err != nil {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	return nil
}

// All returns the keys with a prefix, and their values.
func (r *Run) All(ctx context.Context, prefix string) (map[string]State, error) {
	all, err := r.c.below(ctx, stateStream(r.id), statePrefix(r.id), prefix)
	if err != nil {
		return nil, fmt.Errorf("read %s*: %w", prefix, err)
	}
	return all, nil
}

// below reads the keys of a bucket one by one from its leader, because a consumer may read from a replica that lags.
func (c *Conn) below(ctx context.Context, stream, bucket, prefix string) (map[string]State, error) {
	var subjects map[string]uint64
	err := c.patient(ctx, operation{stream: stream, uses: []string{"$JS.API.STREAM.INFO." + stream}, do: func(ctx context.Context, _ bool) error {
		s, err := c.stream(ctx, stream)
		if err != nil {
			return err
		}
		info, err := s.Info(ctx, jetstream.WithSubjectFilter(bucket+words(prefix)))
		if err == nil {
			subjects = info.State.Subjects
		}
		return err
	}})
	if err != nil {
		return nil, err
	}
	found := make(chan *jetstream.RawStreamMsg, len(subjects))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for subject := range subjects {
		if strings.HasPrefix(subject, bucket+prefix) {
			group.Go(func() error {
				m, err := c.last(groupCtx, stream, subject)
				if m != nil && m.Header.Get(headerKV) == "" {
					found <- m
				}
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	close(found)
	all := map[string]State{}
	for m := range found {
		all[strings.TrimPrefix(m.Subject, bucket)] = State{Value: notNil(m.Data), At: m.Time, Revision: m.Sequence}
	}
	return all, nil
}
