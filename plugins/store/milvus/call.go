package milvus

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

// call makes a call, and makes it again while it fails in a way that may pass,
// for as long as the config says. While nothing at all is answered that time
// counts from the first call of all: a server that stays away is waited for
// once, not by every call anew. The attempt's number tells do whether an earlier
// try may have reached the server.
func (s *server) call(ctx context.Context, what string, do func(ctx context.Context, c *client.GrpcClient, attempt int) error) error {
	giveUp := time.Now().Add(s.config.RetryTime)
	for attempt := 0; ; attempt++ {
		c, err := s.client(ctx)
		if err != nil {
			return err
		}
		err = s.once(ctx, func(ctx context.Context) error { return do(ctx, c, attempt) })
		if away := s.silence.note(err); !away.IsZero() && away.Add(s.config.RetryTime).Before(giveUp) {
			giveUp = away.Add(s.config.RetryTime)
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !transient(err):
			return s.failed(what, err)
		}
		pause := pauses.Delay(attempt + 1)
		if time.Now().Add(pause).After(giveUp) {
			// Not transient: this was the time for trying again.
			return &sdk.Error{Code: sdk.CodeDeadline, Err: fmt.Errorf("milvus at %s: %s: %w; given up after %v of trying again: see to the server, or raise retry_time", s.endpoint.address, what, s.mask(err), s.config.RetryTime)}
		}
		if err := backoff.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// silence is how long a server has answered nothing.
type silence struct {
	mu    sync.Mutex
	since time.Time
}

// note takes in the outcome of a try and returns when the silence began; zero:
// the server answers.
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

// once gives one try its deadline.
func (s *server) once(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.config.CallTimeout)
	defer cancel()
	return do(ctx)
}

// failed describes a failure that no retry helps against.
func (s *server) failed(what string, err error) error {
	var fault *statusError
	err = s.mask(err)
	if status.Code(err) == codes.Unauthenticated || errors.As(err, &fault) && fault.unauthenticated() {
		return sdk.Invalid(fmt.Errorf("milvus at %s: %s: %w: check user, password or token and their rights", s.endpoint.address, what, err))
	}
	return fmt.Errorf("milvus at %s: %s: %w", s.endpoint.address, what, err)
}

// callLoaded is call for what needs the collection in the server's memory: it
// loads it where the server has forgotten that, as some do at a restart.
func (c *collection) callLoaded(ctx context.Context, what string, do func(ctx context.Context, m *client.GrpcClient, attempt int) error) error {
	for try := 0; ; try++ {
		err := c.server.call(ctx, what, do)
		var fault *statusError
		if try == 0 && errors.As(err, &fault) && fault.notLoaded() {
			if err := c.load(ctx); err != nil {
				return err
			}
			continue
		}
		if errors.As(err, &fault) && fault.missing() {
			return sdk.Invalid(fmt.Errorf("collection %q is gone from the server: open it again: %w", c.name, err))
		}
		return err
	}
}
