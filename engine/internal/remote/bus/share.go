package bus

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// Role is the part that a process plays in runs. examples/cluster/accounts.conf has the rights of each.
type Role string

// The roles.
const (
	Caller Role = "caller" // creates runs, publishes batches, reads results, removes runs
	Worker Role = "worker" // reads runs, takes batches, writes results, answers and its own state
)

// Share opens what runs share under a name of lower-case letters, digits and hyphens: state, questions, and answers of
// services. A caller creates it if it does not exist; a worker may not.
func (c *Conn) Share(ctx context.Context, name string, role Role) (*Run, error) {
	id := "shared-" + name // no ID of a run has a hyphen
	if role == Caller {
		for _, s := range streamsOf(id) {
			if s.Name == itemsStream(id) {
				continue
			}
			if err := c.createStream(ctx, s, 0); err != nil {
				return nil, fmt.Errorf("share %s: %w", name, err)
			}
		}
	}
	return &Run{c: c, id: id}, nil
}

// SharedAnswers is a response cache that runs share: before a process asks a service, it claims the key, so that others wait
// for its answer. It implements governor.Shared.
type SharedAnswers struct {
	ctx   context.Context
	run   *Run
	local governor.Responses
	id    []byte // value of its claims

	mu     sync.Mutex
	claims map[string]bool // by name: what this process is asking
}

var _ governor.Shared = (*SharedAnswers)(nil)

// NewSharedAnswers adds shared answers to a cache, which also gets those of others. Close it.
func NewSharedAnswers(ctx context.Context, run *Run, local governor.Responses) *SharedAnswers {
	return &SharedAnswers{ctx: ctx, run: run, local: local, id: []byte(rand.Text()), claims: map[string]bool{}}
}

// Close gives up the claims of keys that this process did not get an answer for.
func (s *SharedAnswers) Close(ctx context.Context) {
	s.mu.Lock()
	claims := s.claims
	s.claims = map[string]bool{}
	s.mu.Unlock()
	for name := range claims {
		_ = s.run.Delete(ctx, askingKey(name)) // if this fails, others ask after askingFor
	}
}

// askingFor is how long others wait for the answer to a key that a process has claimed. Then they ask, too.
const askingFor = time.Minute

// askingPause is the time between two looks for such an answer.
const askingPause = 100 * time.Millisecond

func askingKey(name string) string { return "lease." + name }

// Get implements governor.Responses.
func (s *SharedAnswers) Get(key sdk.Key) ([]byte, bool) {
	return only(s.GetAll(s.ctx, []sdk.Key{key}, false))
}

// GetAll implements governor.Shared. Of keys without an answer, it returns those that this process has to ask for.
func (s *SharedAnswers) GetAll(ctx context.Context, keys []sdk.Key, fresh bool) ([][]byte, error) {
	values := make([][]byte, len(keys))
	if shared, ok := s.local.(governor.Shared); ok {
		var err error
		if values, err = shared.GetAll(ctx, keys, fresh); err != nil {
			return nil, err
		}
	} else {
		for i, key := range keys {
			values[i], _ = s.local.Get(key)
		}
	}
	var missing []int
	for i, value := range values {
		if value == nil {
			missing = append(missing, i)
		}
	}
	// All processes claim in the same order, so no two of them wait for each other.
	slices.SortFunc(missing, func(a, b int) int { return bytes.Compare(keys[a][:], keys[b][:]) })
	for _, i := range missing {
		var err error
		if values[i], err = s.await(ctx, keys[i]); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// await returns the answer of a key; nil: this process has to ask for it.
func (s *SharedAnswers) await(ctx context.Context, key sdk.Key) ([]byte, error) {
	name := name(key)
	var seen uint64
	var since time.Time
	for {
		value, err := s.look(ctx, key)
		if value != nil || err != nil {
			return value, err
		}
		of, revision, err := s.run.Get(ctx, askingKey(name))
		if err != nil {
			return nil, err
		}
		if revision != seen {
			seen, since = revision, time.Now()
		}
		if revision == 0 || bytes.Equal(of, s.id) || time.Since(since) > askingFor {
			if _, err := s.run.Swap(ctx, askingKey(name), s.id, revision); err == nil {
				s.mu.Lock()
				s.claims[name] = true
				s.mu.Unlock()
				return s.look(ctx, key) // it may have come before the claim
			}
		}
		if err := support.SleepFor(ctx, askingPause); err != nil {
			return nil, err
		}
	}
}

func (s *SharedAnswers) look(ctx context.Context, key sdk.Key) ([]byte, error) {
	a, err := s.run.answered(ctx, key)
	if err != nil || a == nil {
		return nil, err
	}
	return notNil(a.Value), s.local.Add(key, a.About, a.Value)
}

// Add stores an answer of a service for all runs. The first one of a key counts.
func (s *SharedAnswers) Add(key sdk.Key, about string, value []byte) error {
	name := name(key)
	first, err := s.run.keepAnswer(s.ctx, key, answer{about, value})
	if err != nil {
		return fmt.Errorf("an answer is not shared: %w", err)
	}
	s.mu.Lock()
	mine := s.claims[name]
	delete(s.claims, name)
	s.mu.Unlock()
	if mine {
		_ = s.run.Delete(s.ctx, askingKey(name)) // nobody looks at it any more
	}
	return s.local.Add(key, about, first.Value)
}

// Put implements governor.Responses. An answer that others read stays.
func (s *SharedAnswers) Put(key sdk.Key, about string, value []byte) error {
	return s.Add(key, about, value)
}
