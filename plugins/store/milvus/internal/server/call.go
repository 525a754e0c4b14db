package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/backoff"
)

// pauses are the delays between attempts.
var pauses = backoff.Backoff{First: 50 * time.Millisecond, Max: 2 * time.Second}

// Call makes a call, and makes it again after transient failures for as long as
// the config says. While the server answers nothing at all, that time counts from
// the first call that it did not answer: callers wait once for a server that stays
// away, not each anew. From the second attempt on (attempt is 1 or more), an
// earlier one may have reached the server.
func (s *Server) Call(ctx context.Context, what string, do func(ctx context.Context, c *client.GrpcClient, attempt int) error) error {
	giveUp := time.Now().Add(s.Config.RetryTime)
	for attempt := 0; ; attempt++ {
		if _, err := s.Client(ctx); err != nil {
			return err
		}
		err := s.Once(ctx, func(ctx context.Context, c *client.GrpcClient) error { return do(ctx, c, attempt) })
		if away := s.silence.note(err); !away.IsZero() && away.Add(s.Config.RetryTime).Before(giveUp) {
			giveUp = away.Add(s.Config.RetryTime)
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case isUnauthenticated(err):
			return sdk.Invalid(fmt.Errorf("milvus at %s: %s: %w: check user, password or token and their rights", s.address, what, err))
		case !isTransient(err):
			return fmt.Errorf("milvus at %s: %s: %w", s.address, what, err)
		}
		pause := pauses.Delay(attempt + 1)
		if time.Now().Add(pause).After(giveUp) {
			// Not transient: this was the time for trying again.
			return &sdk.Error{Code: sdk.CodeDeadline, Err: fmt.Errorf("milvus at %s: %s: %w; given up after %v of trying again: see to the server, or raise retry_time", s.address, what, err, s.Config.RetryTime)}
		}
		if err := backoff.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// Once makes one attempt of a call, within the time that the config gives one.
func (s *Server) Once(ctx context.Context, do func(context.Context, *client.GrpcClient) error) error {
	c, err := s.Client(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.Config.CallTimeout)
	defer cancel()
	return s.mask(do(ctx, c))
}

// silence is how long a server has answered nothing.
type silence struct {
	mu    sync.Mutex
	since time.Time
}

// note records the result of an attempt and returns when the silence began;
// zero: the server answers.
func (s *silence) note(err error) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch code := status.Code(err); {
	case code == codes.Canceled || errors.Is(err, context.Canceled):
	case code != codes.Unavailable && code != codes.DeadlineExceeded && !errors.Is(err, context.DeadlineExceeded):
		s.since = time.Time{}
	case s.since.IsZero():
		s.since = time.Now()
	}
	return s.since
}
