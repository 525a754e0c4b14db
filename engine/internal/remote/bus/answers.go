package bus

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fxamacker/cbor/v2"
	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/engine/internal/knowledge/cache"
	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/sdk"
)

// This file is the response cache of a run on many machines: workers reuse what a service has
// answered to another worker.
//
// A worker's AnswersCache replaces the response cache of its state folder (engine.Services.Responses). It
// looks in that folder, then in the run's bucket at the servers, and then asks the caller for answers of
// earlier runs. An answer of a service counts only after it is stored in the folder and in the bucket, so
// that it survives the loss of any machine. If workers ask the same question at the same time, the first
// answer stored is the one that all read later. If earlier answers must not count (governor.Refresh), the
// cache only looks in the bucket, which holds the answers of this run.
//
// While the servers are unreachable, lookups and new answers wait; the worker's folder already
// holds the answer meanwhile.
//
// The caller's side (ServeAnswers) answers the workers' questions and copies their answers into the
// caller's response cache, so that a later run on that machine need not pay again.
//
// Workers that ask the same question before any of them has an answer all pay: none waits for the
// call of another machine.

// answer is an answer of a service, as it is stored and sent.
type answer struct {
	About string `cbor:"1,keyasint"` // description for people
	Value []byte `cbor:"2,keyasint"`
}

// cacheSubject is the subject for questions to the caller about answers of earlier runs. A question is a
// list of keys; the reply is a list with an answer or nothing for each.
const cacheSubject = "answers"

const (
	// looks is how many keys one call looks up in the bucket at the same time.
	looks = 16
	// answerPatience limits the wait for the caller's reply. After a timeout the caller, which may be
	// suspended, is not asked again for the duration leave, so that not every lookup waits that long.
	answerPatience = 10 * time.Second
	leave          = time.Minute
)

// AnswersCache is a worker's response cache. It implements governor.Shared.
type AnswersCache struct {
	ctx      context.Context
	local    *cache.Cache
	run      *Run
	patience time.Duration             // with a caller that does not reply
	absent   atomic.Pointer[time.Time] // the caller is not asked before this time
}

var _ governor.Shared = (*AnswersCache)(nil)

// NewAnswersCache creates a worker's response cache; local is the cache of its state folder. After
// ctx ends, no call waits for the servers.
func NewAnswersCache(ctx context.Context, local *cache.Cache, run *Run) *AnswersCache {
	return &AnswersCache{ctx: ctx, local: local, run: run, patience: answerPatience}
}

// name returns the name of a key in the bucket.
func name(key sdk.Key) string { return hex.EncodeToString(key[:]) }

// Get returns the value of a key.
func (c *AnswersCache) Get(key sdk.Key) ([]byte, bool) {
	return only(c.GetAll(c.ctx, []sdk.Key{key}, false))
}

// only returns the value of the one key that was asked for.
func only(values [][]byte, err error) ([]byte, bool) {
	if err != nil {
		return nil, false
	}
	return values[0], values[0] != nil
}

// GetAll implements governor.Shared. It copies what it finds elsewhere into the folder.
func (c *AnswersCache) GetAll(ctx context.Context, keys []sdk.Key, fresh bool) ([][]byte, error) {
	values := make([][]byte, len(keys))
	looking, within := errgroup.WithContext(ctx)
	looking.SetLimit(looks)
	for i, key := range keys {
		if !fresh {
			if value, ok := c.local.Get(key); ok {
				values[i] = value
				continue
			}
		}
		looking.Go(func() (err error) {
			values[i], err = c.look(within, key)
			return err
		})
	}
	if err := looking.Wait(); err != nil || fresh {
		return values, err
	}
	c.ask(ctx, keys, values)
	return values, ctx.Err()
}

// look looks a key up in the run's bucket.
func (c *AnswersCache) look(ctx context.Context, key sdk.Key) ([]byte, error) {
	a, err := c.run.answered(ctx, key)
	if err != nil || a == nil {
		return nil, err
	}
	return copyTo(c.local, key, *a), nil
}

// answered returns the stored answer of a service; nil: there is none that can be read, so the service is asked again.
func (r *Run) answered(ctx context.Context, key sdk.Key) (*answer, error) {
	data, err := r.Answered(ctx, name(key))
	a := &answer{}
	if err != nil || data == nil || cbor.Unmarshal(data, a) != nil {
		return nil, err
	}
	return a, nil
}

// keepAnswer stores an answer of a service, and returns the one that stands: the first of its key.
func (r *Run) keepAnswer(ctx context.Context, key sdk.Key, a answer) (answer, error) {
	data, err := cbor.Marshal(a)
	if err == nil {
		data, err = r.KeepAnswer(ctx, name(key), data)
	}
	if err == nil {
		err = cbor.Unmarshal(data, &a)
	}
	return a, err
}

// copyTo copies another machine's answer into a folder, and returns its value.
func copyTo(local *cache.Cache, key sdk.Key, a answer) []byte {
	if value, ok := local.Get(key); !ok || !bytes.Equal(value, a.Value) {
		_ = local.Put(key, a.About, a.Value) // if this fails, it is copied again
	}
	return notNil(a.Value)
}

// ask asks the caller for the values that are missing. If the caller does not reply, there are none.
func (c *AnswersCache) ask(ctx context.Context, keys []sdk.Key, values [][]byte) {
	var missing []int
	var question []sdk.Key
	for i, value := range values {
		if value == nil {
			missing, question = append(missing, i), append(question, keys[i])
		}
	}
	if until := c.absent.Load(); len(missing) == 0 || until != nil && time.Now().Before(*until) {
		return
	}
	data, err := cbor.Marshal(question)
	if err != nil {
		return
	}
	within, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	data, err = c.run.Ask(within, cacheSubject, data)
	if within.Err() != nil && ctx.Err() == nil {
		until := time.Now().Add(leave)
		c.absent.Store(&until)
	}
	var all []*answer
	if err != nil || cbor.Unmarshal(data, &all) != nil || len(all) != len(missing) {
		return
	}
	for i, a := range all {
		if a != nil {
			values[missing[i]] = copyTo(c.local, question[i], *a)
		}
	}
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
	stands, err := c.run.keepAnswer(c.ctx, key, a)
	if err != nil {
		return fmt.Errorf("an answer is kept on this machine alone: %w", err)
	}
	copyTo(c.local, key, stands)
	return nil
}

// AnswersServer is the caller's side of a run's response cache.
type AnswersServer struct {
	local *cache.Cache
	run   *Run
	stop  func()
	at    uint64 // sequence number of the last copied answer; read it after stop
}

// ServeAnswers answers the workers' questions from the caller's response cache, and copies their answers into
// it. Close the returned server, which closes the cache.
func ServeAnswers(ctx context.Context, run *Run, local *cache.Cache, log *slog.Logger) (*AnswersServer, error) {
	s := &AnswersServer{local: local, run: run}
	silence, err := run.Serve(cacheSubject, s.reply)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var copying sync.WaitGroup
	copying.Go(func() {
		if err := s.copy(ctx, math.MaxUint64); err != nil && ctx.Err() == nil {
			log.Warn("answers of workers do not come into this machine's response cache any more: a later run here may pay for them again", "error", err)
		}
	})
	s.stop = func() {
		silence()
		cancel()
		copying.Wait()
	}
	return s, nil
}

func (s *AnswersServer) reply(data []byte) []byte {
	var keys []sdk.Key
	if err := cbor.Unmarshal(data, &keys); err != nil {
		return nil
	}
	all := make([]*answer, len(keys))
	for i, key := range keys {
		if value, ok := s.local.Get(key); ok {
			all[i] = &answer{"from the caller", value}
		}
	}
	reply, _ := cbor.Marshal(all) // these types have no errors
	return reply
}

// copy copies the workers' answers into the folder, up to a sequence number or until ctx ends.
func (s *AnswersServer) copy(ctx context.Context, last uint64) error {
	if s.at >= last {
		return nil
	}
	for m, err := range s.run.contents(ctx, answersStream(s.run.id), answerSubject(s.run.id, ">"), s.at) {
		if err != nil {
			return err
		}
		var a answer
		key, notHex := hex.DecodeString(m.Subject[len(answerSubject(s.run.id, "")):])
		if notHex == nil && len(key) == len(sdk.Key{}) && cbor.Unmarshal(m.Data, &a) == nil { // others are not a process's
			copyTo(s.local, sdk.Key(key), a)
		}
		if s.at = m.Sequence; s.at >= last {
			return nil
		}
	}
	return fmt.Errorf("%d of %d answers of the run are in this machine's response cache: %w", s.at, last, context.Cause(ctx))
}

// Close ends the server. With all, it copies the answers that workers have stored before the call.
func (s *AnswersServer) Close(ctx context.Context, all bool) error {
	s.stop()
	var err error
	if all {
		var last uint64
		if last, err = s.run.newest(ctx, answersStream(s.run.id), answerSubject(s.run.id, ">")); err == nil {
			err = s.copy(ctx, last)
		}
	}
	return errors.Join(err, s.local.Close())
}
