package answers

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/racflow/racflow/engine/cluster/bus"
	"github.com/racflow/racflow/sdk"
)

// noteEvery is after how many answers it is noted how far the folder is: those behind the note are
// looked at again after a death, and found to be there.
const noteEvery = 256

// bring puts what workers keep into the folder, until the Server ends.
func (s *Server) bring() {
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
func (s *Server) take(a bus.Answer) error {
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
func (s *Server) reach(at uint64, failed error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at, s.failed = at, failed
	close(s.more)
	s.more = make(chan struct{})
}

// note keeps how far the folder is.
func (s *Server) note() {
	s.mu.Lock()
	at := s.at
	s.mu.Unlock()
	if err := s.local.KeepCopied(s.run.ID(), at); err != nil {
		s.log.Debug("it is not noted how many answers of the run are here: they will be looked at again", "error", err)
	}
}

// Bring waits until everything is in the folder that workers have kept before.
func (s *Server) Bring(ctx context.Context) error {
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
func (s *Server) Close() error {
	s.stop()
	s.end()
	s.bringing.Wait()
	s.note()
	if s.failed != nil && !errors.Is(s.failed, context.Canceled) {
		return s.failed
	}
	return nil
}
