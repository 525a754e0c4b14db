package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/racflow/racflow/engine/serve/guard"
	"github.com/racflow/racflow/sdk/support"
)

// cutOff is how long requests have that were told to end because the grace is over.
const cutOff = 5 * time.Second

// Serve answers what comes in until ctx ends, and then ends as Options say: /readyz says
// so, connections are taken for as long as Drain is, and requests have the Grace to end.
// The error says that some had not, or why it could not serve. A server serves once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	defer s.behind.Wait()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stop()
	}()
	server := guard.NewServer(s.guard, s.options.Guard)
	server.BaseContext = func(net.Listener) context.Context { return s.life }
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	s.end()
	ctx = context.WithoutCancel(ctx)
	if err := support.SleepFor(ctx, s.options.Drain); err != nil {
		return err
	}
	grace, cancel := context.WithTimeout(ctx, s.options.Grace)
	defer cancel()
	err := server.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		s.stop() // their contexts end
		last, cancel := context.WithTimeout(ctx, cutOff)
		defer cancel()
		err = errors.Join(fmt.Errorf("requests were cut off that had not ended after %s", s.options.Grace), ignoreLate(server.Shutdown(last)), server.Close())
	}
	if ended := <-failed; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

func ignoreLate(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}
