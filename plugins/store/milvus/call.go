package milvus

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/racflow/racflow/sdk"
)

// The waits between tries, which double up to the longest.
const (
	firstWait   = 50 * time.Millisecond
	longestWait = 2 * time.Second
)

// call makes a call, and makes it again while it fails in a way that may pass,
// for as long as the config says. The attempt's number tells do whether an
// earlier try may have reached the server.
func (s *server) call(ctx context.Context, what string, do func(ctx context.Context, c *client.GrpcClient, attempt int) error) error {
	giveUp := time.Now().Add(s.config.RetryTime)
	wait := firstWait
	for attempt := 0; ; attempt++ {
		c, err := s.client(ctx)
		if err != nil {
			return err
		}
		err = s.once(ctx, func(ctx context.Context) error { return do(ctx, c, attempt) })
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !transient(err):
			return s.failed(what, err)
		}
		pause := wait/2 + rand.N(wait)
		if time.Now().Add(pause).After(giveUp) {
			return sdk.Transient(fmt.Errorf("milvus at %s: %s: %w; given up after %v of trying again", s.endpoint.address, what, s.mask(err), s.config.RetryTime), 0)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
		wait = min(2*wait, longestWait)
	}
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
