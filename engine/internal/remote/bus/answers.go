package bus

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

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

// answer is an answer of a service, as it is sent.
type answer struct {
	about string // description for people
	value []byte
}

// maxAbout limits the bytes of answer.about in a message: a folder stores fewer.
const maxAbout = 64

// encode returns the bytes for the bucket: the length of about in one byte, about, and the value.
func (a answer) encode() []byte {
	about := a.about[:min(len(a.about), maxAbout)]
	b := make([]byte, 0, 1+len(about)+len(a.value))
	b = append(b, byte(len(about)))
	return append(append(b, about...), a.value...)
}

var errDamaged = errors.New("what the servers keep of an answer cannot be read: something else than racflow wrote it")

func decode(data []byte) (answer, error) {
	if len(data) < 1 || int(data[0]) > len(data)-1 {
		return answer{}, errDamaged
	}
	n := 1 + int(data[0])
	return answer{string(data[1:n]), data[n:]}, nil
}

// A question to the caller is a list of keys. The reply has one status byte for each key; after
// found follow the length in four bytes, little-endian, and the answer.
const (
	nothing byte = iota // the caller has no answer
	found               // the answer follows
	kept                // the answer is in the run's bucket, since it is large
	later               // the answer did not fit into the reply: ask again
)

// replyBytes limits the size of a reply: servers accept messages of 1 MiB by default.
const replyBytes = 512 << 10

// maxKeys limits the number of keys in a question.
const maxKeys = 1024

// replied is the reply for one key.
type replied struct {
	says byte
	answer
}

// encodeQuestion encodes keys as a question.
func encodeQuestion(keys []sdk.Key) []byte {
	b := make([]byte, 0, len(keys)*len(sdk.Key{}))
	for _, key := range keys {
		b = append(b, key[:]...)
	}
	return b
}

func decodeQuestion(b []byte) (keys []sdk.Key) {
	for ; len(b) >= len(sdk.Key{}) && len(keys) < maxKeys; b = b[len(sdk.Key{}):] {
		keys = append(keys, sdk.Key(b))
	}
	return keys
}

// appendReply appends the reply for one key.
func appendReply(b []byte, says byte, data []byte) []byte {
	b = append(b, says)
	if says == found {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(data))), data...) //nolint:gosec // at most replyBytes
	}
	return b
}

// decodeReply decodes the reply for n keys.
func decodeReply(b []byte, n int) ([]replied, error) {
	all := make([]replied, 0, n)
	for range n {
		if len(b) == 0 {
			return nil, errDamaged
		}
		r := replied{says: b[0]}
		b = b[1:]
		if r.says == found {
			if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
				return nil, errDamaged
			}
			end := 4 + int(binary.LittleEndian.Uint32(b))
			var err error
			if r.answer, err = decode(b[4:end]); err != nil {
				return nil, err
			}
			b = b[end:]
		}
		all = append(all, r)
	}
	return all, nil
}

// Answered returns the stored answer of a service; nil: there is none.
func (r *Run) Answered(ctx context.Context, key string) ([]byte, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	m, err := r.c.last(ctx, answersStream(r.id), answerSubject(r.id, key))
	if err != nil {
		return nil, fmt.Errorf("read answer %s: %w", key, err)
	}
	if m == nil {
		return nil, nil
	}
	value, err := r.unpack(ctx, m.Header, m.Data)
	if err != nil {
		return nil, fmt.Errorf("read answer %s: %w", key, err)
	}
	return notNil(value), nil
}

// KeepAnswer stores an answer of a service, and waits until it is stored. It returns the answer
// that counts: the first one of the key, for the life of the run.
func (r *Run) KeepAnswer(ctx context.Context, key string, value []byte) (stands []byte, err error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	m, err := r.pack(ctx, answerSubject(r.id, key), value)
	if err != nil {
		return nil, fmt.Errorf("keep answer %s: %w", key, err)
	}
	mine, err := r.c.once(ctx, answersStream(r.id), m)
	switch {
	case err != nil:
		return nil, fmt.Errorf("keep answer %s: %w", key, err)
	case mine:
		return notNil(value), nil
	}
	return r.Answered(ctx, key)
}

// answerPatience limits the wait for the caller's reply. After a timeout the caller, which may be
// suspended, is not asked again for the duration leave, so that not every lookup waits that long.
const (
	answerPatience = 10 * time.Second
	leave          = time.Minute
)

// question asks the caller for one key.
type question struct {
	key    sdk.Key
	answer chan replied // receives one reply
}

// askAll asks the caller for the keys that are still missing.
func (c *AnswersCache) askAll(ctx context.Context, keys []sdk.Key, values [][]byte, missing []int) error {
	asked := map[int]*question{}
	for _, i := range missing {
		if values[i] == nil {
			asked[i] = &question{keys[i], make(chan replied, 1)}
		}
	}
	c.enqueue(asked)
	for i, q := range asked {
		var r replied
		select {
		case r = <-q.answer:
		case <-ctx.Done():
			return ctx.Err()
		}
		switch r.says {
		case found:
			values[i] = r.value
			_ = c.have(q.key, r.answer) // if this fails, it is asked for again
		case kept:
			var err error
			if values[i], err = c.look(ctx, q.key); err != nil {
				return err
			}
		}
	}
	return nil
}

// enqueue queues questions. Questions that arrive while the caller is being asked are sent together
// afterwards, so that a thousand goroutines cause only a few messages.
func (c *AnswersCache) enqueue(asked map[int]*question) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, q := range asked {
		c.queue = append(c.queue, q)
	}
	if !c.going && len(c.queue) > 0 {
		c.going = true
		go c.askQueued()
	}
}

// askQueued asks the caller until the queue is empty.
func (c *AnswersCache) askQueued() {
	for {
		c.mu.Lock()
		asking := c.queue
		c.queue = nil
		if len(asking) == 0 {
			c.going = false
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		by := map[sdk.Key][]*question{} // equal keys are asked for once
		var keys []sdk.Key
		for _, q := range asking {
			if by[q.key] == nil {
				keys = append(keys, q.key)
			}
			by[q.key] = append(by[q.key], q)
		}
		for len(keys) > 0 {
			now := keys[:min(len(keys), maxKeys)]
			keys = keys[len(now):]
			all := c.ask(now)
			for i, r := range all {
				if r.says == later && all[0].says != later { // the first answer always fits
					keys = append(keys, now[i])
					continue
				}
				for _, q := range by[now[i]] {
					q.answer <- r
				}
			}
		}
	}
}

// ask asks the caller for keys. If the caller does not reply, there are no answers.
func (c *AnswersCache) ask(keys []sdk.Key) []replied {
	none := make([]replied, len(keys))
	if time.Now().Before(c.absent) {
		return none
	}
	ctx, cancel := context.WithTimeout(c.ctx, answerPatience)
	defer cancel()
	data, err := c.run.Ask(ctx, cacheSubject, encodeQuestion(keys))
	if err == nil {
		var all []replied
		if all, err = decodeReply(data, len(keys)); err == nil {
			return all
		}
	}
	if ctx.Err() != nil {
		c.absent = time.Now().Add(leave)
	}
	return none
}

// noteEvery is the number of answers after which the progress of copying is saved. After a crash,
// answers behind that point are checked again and found to exist.
const noteEvery = 256

// bring copies the workers' answers into the folder until the server ends.
func (s *AnswersServer) bring() {
	n := 0
	for a, err := range s.run.Answers(s.ctx, s.at) {
		if err == nil {
			err = s.take(a)
		}
		if err != nil {
			if s.ctx.Err() == nil {
				s.log.Warn("answers of workers do not come into this machine's response cache any more: a later run here may pay for them again", "error", err)
			}
			s.reach(s.at, err)
			return
		}
		s.reach(a.Sequence, nil)
		if n++; n%noteEvery == 0 {
			s.note()
		}
	}
	s.reach(s.at, context.Cause(s.ctx))
}

// take copies one answer into the folder.
func (s *AnswersServer) take(a Answer) error {
	got, err := decode(a.Value)
	b, notHex := hex.DecodeString(a.Key)
	if err != nil || notHex != nil || len(b) != len(sdk.Key{}) {
		return nil //nolint:nilerr // no process could use it
	}
	key := sdk.Key(b)
	if value, ok := s.local.Get(key); ok && bytes.Equal(value, got.value) {
		return nil
	}
	return s.local.Put(key, got.about, got.value)
}

// reach records the last answer copied into the folder.
func (s *AnswersServer) reach(at uint64, failed error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at, s.failed = at, failed
	close(s.more)
	s.more = make(chan struct{})
}

// note saves the progress of copying.
func (s *AnswersServer) note() {
	s.mu.Lock()
	at := s.at
	s.mu.Unlock()
	if err := s.local.KeepCopied(s.run.ID(), at); err != nil {
		s.log.Debug("it is not noted how many answers of the run are here: they will be looked at again", "error", err)
	}
}

// Bring waits until the folder has all answers that workers have stored before the call.
func (s *AnswersServer) Bring(ctx context.Context) error {
	last, err := s.run.LastAnswer(ctx)
	if err != nil {
		return fmt.Errorf("how many answers of the run there are: %w", err)
	}
	for {
		s.mu.Lock()
		at, more, failed := s.at, s.more, s.failed
		s.mu.Unlock()
		switch {
		case at >= last:
			return nil
		case failed != nil:
			return failed
		}
		select {
		case <-more:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d answers of the run are in this machine's response cache: %w", at, last, ctx.Err())
		}
	}
}

// Close ends the server. To copy the remaining answers, call Bring first.
func (s *AnswersServer) Close() error {
	s.stop()
	s.end()
	s.bringing.Wait()
	s.note()
	if s.failed != nil && !errors.Is(s.failed, context.Canceled) {
		return s.failed
	}
	return nil
}
