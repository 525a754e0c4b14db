// Package sharing makes limits and answers of services hold for all runs that name them, at NATS servers: the arguments
// shared of a limit block and of the cache block. A limit is kept as that of one run on many machines (package lease), by one
// of the runs. Answers are in a bucket (bus.SharedAnswers).
package sharing

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/engine/internal/remote/lease"
)

// Client is what one process shares with other runs.
type Client struct {
	ctx  context.Context
	conn *bus.Conn
	role bus.Role
	log  *slog.Logger

	mu      sync.Mutex
	holders map[string]*lease.Holder // by the name of the limit
	answers []*bus.SharedAnswers
}

// New prepares sharing until ctx ends. Close it.
func New(ctx context.Context, conn *bus.Conn, role bus.Role, log *slog.Logger) *Client {
	return &Client{ctx: ctx, conn: conn, role: role, log: log, holders: map[string]*lease.Holder{}}
}

// Limit returns who admits the calls of a limit block that runs share. It is a governor.Options.Share.
func (s *Client) Limit(l *pipeline.Limit) (governor.Admitter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.holders[l.Shared]; h != nil {
		return h, nil
	}
	room, err := s.conn.Share(s.ctx, l.Shared, s.role)
	if err != nil {
		return nil, err
	}
	h, err := lease.Hold(s.ctx, room, nil, lease.Options{Name: s.conn.Name(), Log: s.log, Limits: lease.LimitOf(l)})
	if err != nil {
		return nil, err
	}
	s.holders[l.Shared] = h
	return h, nil
}

// Answers returns a response cache that shares the answers in another one under a name.
func (s *Client) Answers(name string, local governor.Responses) (governor.Responses, error) {
	room, err := s.conn.Share(s.ctx, name, s.role)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := bus.NewSharedAnswers(s.ctx, room, local)
	s.answers = append(s.answers, a)
	return a, nil
}

// Close lets other runs go on at once with what this process has kept for them.
func (s *Client) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, done := context.WithTimeout(context.WithoutCancel(s.ctx), 5*time.Second)
	defer done()
	for _, a := range s.answers {
		a.Close(ctx)
	}
	for _, h := range s.holders {
		h.Close()
	}
}
