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

// This file is the response cache of a run on many machines: what a service answered to one
// worker, the others need not ask for.
//
// A worker's Cache takes the place of the response cache of its state folder
// (engine.Services.Responses). It looks there, then in the run's bucket at the servers, and then asks
// the caller for what its response cache has of earlier runs. What a service answers is in the folder
// and in the bucket before it counts: from then on it survives every machine of the run. Of workers
// that asked the same at the same time, the first one's answer is what all read later. Where earlier answers
// are not to count (governor.Refresh), the bucket alone is looked into: it has what this run kept.
//
// While the servers cannot be reached, a look and an answer that is to be kept wait for them; the answer is in the
// worker's folder meanwhile.
//
// The caller's side (Serve) answers what workers ask, and brings what they kept into the caller's
// response cache, so that a later run on that machine pays for nothing again.
//
// Workers that ask the same before one of them has an answer all pay: nobody waits for another
// machine's call.

// answer is what a service answered, as it travels.
type answer struct {
	about string // what it is, for people
	value []byte
}

// maxAbout is how many bytes of answer.about travel: a folder keeps fewer.
const maxAbout = 64

// encode makes the bytes that the bucket keeps: the length of about in a byte, about, and the value.
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

// A question to the caller is keys, one behind the other. Its reply has for each a byte that says
// what there is; behind found come the length in four bytes, little-endian, and the answer.
const (
	nothing byte = iota // the caller has no answer
	found               // here it is
	kept                // it is in the run's bucket: it is large
	later               // it did not fit into the reply: ask again
)

// replyBytes is how large a reply gets: servers take messages of 1 MiB unless they are configured otherwise.
const replyBytes = 512 << 10

// maxKeys is how many keys a question has at most.
const maxKeys = 1024

// replied is what a reply says about one key.
type replied struct {
	says byte
	answer
}

// encodeQuestion makes a question of keys.
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

// appendReply appends what is said about one key.
func appendReply(b []byte, says byte, data []byte) []byte {
	b = append(b, says)
	if says == found {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(data))), data...) //nolint:gosec // at most replyBytes
	}
	return b
}

// decodeReply reads what is said about n keys.
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

// Answered reads what a service answered: nil where nothing is kept.
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

// KeepAnswer keeps what a service answered and returns when it is stored; until then it waits. The first answer of a key stands for
// the life of the run; it returns what stands.
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

// answerPatience is how long the caller may take for a reply. One that takes longer, such as one that is
// stopped, is not asked for a while: until then every look would take that long.
const (
	answerPatience = 10 * time.Second
	leave          = time.Minute
)

// question is a key that the caller is asked for.
type question struct {
	key    sdk.Key
	answer chan replied // gets one
}

// askAll asks the caller for those keys that are missing still.
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
			_ = c.have(q.key, r.answer) // at worst it is asked for again
		case kept:
			var err error
			if values[i], err = c.look(ctx, q.key); err != nil {
				return err
			}
		}
	}
	return nil
}

// enqueue has questions asked. What comes while the caller is being asked goes there together afterwards:
// so a thousand goroutines make a few messages.
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

// askQueued asks until nothing is left to ask.
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
		by := map[sdk.Key][]*question{} // of equal ones, one is asked
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
				if r.says == later && all[0].says != later { // it cannot be that nothing fits
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

// ask asks the caller for keys. Where nobody replies there is nothing.
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

// noteEvery is after how many answers it is noted how far the folder is: those behind the note are
// looked at again after a death, and found to be there.
const noteEvery = 256

// bring puts what workers keep into the folder, until the Server ends.
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

// take puts one answer into the folder.
func (s *AnswersServer) take(a Answer) error {
	got, err := decode(a.Value)
	b, notHex := hex.DecodeString(a.Key)
	if err != nil || notHex != nil || len(b) != len(sdk.Key{}) {
		return nil //nolint:nilerr // nobody could use it
	}
	key := sdk.Key(b)
	if value, ok := s.local.Get(key); ok && bytes.Equal(value, got.value) {
		return nil
	}
	return s.local.Put(key, got.about, got.value)
}

// reach says how far the folder is.
func (s *AnswersServer) reach(at uint64, failed error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at, s.failed = at, failed
	close(s.more)
	s.more = make(chan struct{})
}

// note keeps how far the folder is.
func (s *AnswersServer) note() {
	s.mu.Lock()
	at := s.at
	s.mu.Unlock()
	if err := s.local.KeepCopied(s.run.ID(), at); err != nil {
		s.log.Debug("it is not noted how many answers of the run are here: they will be looked at again", "error", err)
	}
}

// Bring waits until everything is in the folder that workers have kept before.
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

// Close ends it: first Bring brings the rest, where that is wanted.
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
