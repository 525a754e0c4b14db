package bus

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/engine/internal/knowledge/cache"
	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/sdk"
)

// AnswersRun is the part of *Run that a worker's cache needs.
type AnswersRun interface {
	Answered(ctx context.Context, key string) ([]byte, error)
	KeepAnswer(ctx context.Context, key string, value []byte) (stands []byte, err error)
	Ask(ctx context.Context, subject string, data []byte) ([]byte, error)
}

// cacheSubject is the subject for questions to the caller about answers of earlier runs.
const cacheSubject = "answers"

// looks is how many keys one call looks up in the bucket at the same time.
const looks = 16

// AnswersCache is a worker's response cache. It implements governor.Shared.
type AnswersCache struct {
	ctx   context.Context
	local *cache.Cache
	run   AnswersRun

	mu     sync.Mutex
	queue  []*question // not sent yet
	going  bool        // a goroutine is sending questions; it owns absent
	absent time.Time   // the caller is not asked before this time
}

var _ governor.Shared = (*AnswersCache)(nil)

// NewAnswersCache creates a worker's response cache; local is the cache of its state folder. After
// ctx ends, no call waits for the servers.
func NewAnswersCache(ctx context.Context, local *cache.Cache, run AnswersRun) *AnswersCache {
	return &AnswersCache{ctx: ctx, local: local, run: run}
}

// name returns the name of a key in the bucket.
func name(key sdk.Key) string { return hex.EncodeToString(key[:]) }

// Get returns the value of a key.
func (c *AnswersCache) Get(key sdk.Key) ([]byte, bool) {
	values, err := c.GetAll(c.ctx, []sdk.Key{key}, false)
	if err != nil {
		return nil, false
	}
	return values[0], values[0] != nil
}

// GetAll implements governor.Shared. It copies what it finds elsewhere into the folder.
func (c *AnswersCache) GetAll(ctx context.Context, keys []sdk.Key, fresh bool) ([][]byte, error) {
	values := make([][]byte, len(keys))
	var missing []int
	for i, key := range keys {
		ok := false
		if !fresh {
			values[i], ok = c.local.Get(key)
		}
		if !ok {
			missing = append(missing, i)
		}
	}
	if len(missing) == 0 {
		return values, ctx.Err()
	}
	if err := c.lookAll(ctx, keys, values, missing); err != nil || fresh {
		return values, err
	}
	return values, c.askAll(ctx, keys, values, missing)
}

// lookAll looks keys up in the run's bucket.
func (c *AnswersCache) lookAll(ctx context.Context, keys []sdk.Key, values [][]byte, missing []int) error {
	looking, ctx := errgroup.WithContext(ctx)
	looking.SetLimit(looks)
	for _, i := range missing {
		looking.Go(func() (err error) {
			values[i], err = c.look(ctx, keys[i])
			return err
		})
	}
	return looking.Wait()
}

// look looks a key up in the run's bucket.
func (c *AnswersCache) look(ctx context.Context, key sdk.Key) ([]byte, error) {
	data, err := c.run.Answered(ctx, name(key))
	if err != nil || data == nil {
		return nil, err
	}
	a, err := decode(data)
	if err != nil {
		return nil, nil //nolint:nilerr // the service is asked again, as for a lost answer
	}
	_ = c.have(key, a) // if this fails, it is looked up again
	return a.value, nil
}

// have copies another machine's answer into the folder.
func (c *AnswersCache) have(key sdk.Key, a answer) error {
	if value, ok := c.local.Get(key); ok && bytes.Equal(value, a.value) {
		return nil
	}
	return c.local.Put(key, a.about, a.value)
}

// Add stores an answer of a service: in the folder at once, and in the run's bucket before Add
// returns. If the bucket already has another worker's answer, that one counts for all from then on.
func (c *AnswersCache) Add(key sdk.Key, about string, value []byte) error {
	if err := c.local.Add(key, about, value); err != nil {
		return err
	}
	return c.keep(key, answer{about, value})
}

// Put is like Add, but replaces answers of earlier runs. An answer of this run stays.
func (c *AnswersCache) Put(key sdk.Key, about string, value []byte) error {
	if err := c.local.Put(key, about, value); err != nil {
		return err
	}
	return c.keep(key, answer{about, value})
}

func (c *AnswersCache) keep(key sdk.Key, a answer) error {
	stands, err := c.run.KeepAnswer(c.ctx, name(key), a.encode())
	if err != nil {
		return fmt.Errorf("an answer is kept on this machine alone: %w", err)
	}
	first, err := decode(stands)
	if err != nil {
		return err
	}
	return c.have(key, first)
}

// AnswersSource is the part of *Run that the caller's AnswersServer needs.
type AnswersSource interface {
	ID() string
	KeepAnswer(ctx context.Context, key string, value []byte) (stands []byte, err error)
	Serve(subject string, f func(data []byte) []byte) (stop func(), err error)
	// Answers yields the answers in the bucket after a sequence number, and then new ones, until ctx ends.
	Answers(ctx context.Context, after uint64) iter.Seq2[Answer, error]
	// LastAnswer returns the sequence number of the newest answer; 0: there is none.
	LastAnswer(ctx context.Context) (uint64, error)
}

// AnswersServer is the caller's side of a run's response cache.
type AnswersServer struct {
	local *cache.Cache
	run   AnswersSource
	log   *slog.Logger
	ctx   context.Context // ends with the server
	end   func()
	stop  func()

	bringing sync.WaitGroup
	mu       sync.Mutex
	at       uint64        // sequence number of the last copied answer
	more     chan struct{} // closed when at has changed or copying has ended
	failed   error         // why copying has ended
}

// ServeAnswers answers the workers' questions from the caller's response cache, and copies their answers into
// it, starting after the last answer copied earlier into the same folder. Close the returned server.
func ServeAnswers(ctx context.Context, run AnswersSource, local *cache.Cache, log *slog.Logger) (*AnswersServer, error) {
	at, err := local.Copied(run.ID())
	if err != nil {
		return nil, fmt.Errorf("how many answers of the run are here already: %w", err)
	}
	s := &AnswersServer{local: local, run: run, log: log, at: at, more: make(chan struct{})}
	s.ctx, s.end = context.WithCancel(ctx)
	if s.stop, err = run.Serve(cacheSubject, s.reply); err != nil {
		s.end()
		return nil, err
	}
	s.bringing.Go(s.bring)
	return s, nil
}

// fromCaller describes answers from the caller in a worker's folder.
const fromCaller = "from the caller"

func (s *AnswersServer) reply(data []byte) []byte {
	var reply []byte
	for _, key := range decodeQuestion(data) {
		value, ok := s.local.Get(key)
		if !ok {
			reply = appendReply(reply, nothing, nil)
			continue
		}
		encoded := answer{fromCaller, value}.encode()
		switch {
		case len(reply)+len(encoded) <= replyBytes:
			reply = appendReply(reply, found, encoded)
		case len(encoded) <= replyBytes:
			reply = appendReply(reply, later, nil)
		default:
			reply = appendReply(reply, s.handOver(key, encoded), nil)
		}
	}
	return reply
}

// handOver stores an answer that is too large for a reply in the run's bucket.
func (s *AnswersServer) handOver(key sdk.Key, encoded []byte) byte {
	ctx, cancel := context.WithTimeout(s.ctx, answerPatience/2)
	defer cancel()
	if _, err := s.run.KeepAnswer(ctx, name(key), encoded); err != nil {
		return nothing
	}
	return kept
}
