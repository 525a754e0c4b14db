package host

import (
	"context"
	"errors"
	"strconv"

	"google.golang.org/protobuf/types/known/emptypb"
)

// What follows is for checks of a plugin's manners (package engine/plugin/verify). A process that
// ends by it is started again as after any other end.

// PID is the number of the process that runs now, as the system knows it.
func (p *Process) PID() int {
	pid, _ := strconv.Atoi(p.now().process.running.ID())
	return pid
}

// Kill ends the process that runs now, as the system would, without a word to it, and waits until it has ended.
func (p *Process) Kill(ctx context.Context) error {
	running := p.now().process.running
	_ = running.Kill(ctx)
	select {
	case <-running.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Alive reports whether the process gives a sign of life before ctx ends.
func (p *Process) Alive(ctx context.Context) bool {
	_, ok := p.now().conn.Alive(ctx)
	return ok
}

// HangUp closes the process's standard input, as the end of racflow does, and waits until it has ended.
func (p *Process) HangUp(ctx context.Context) error {
	now := p.now()
	if err := now.process.running.lifeline.Close(); err != nil {
		return err
	}
	return now.process.leaves(ctx, nil)
}

// Shutdown asks the process to end, and waits until it has. Close does the same, and ends it
// where it does not.
func (p *Process) Shutdown(ctx context.Context) error {
	now := p.now()
	refused := make(chan error, 1)
	go func() {
		// A process that ends before it has replied is what was wanted.
		if err := now.process.conn.Invoke(ctx, shutdownMethod, &emptypb.Empty{}, &emptypb.Empty{}); isUnimplemented(err) {
			refused <- errors.New("it has no method " + shutdownMethod)
		}
	}()
	return now.process.leaves(ctx, refused)
}

// leaves waits until the process has ended by itself.
func (c *process) leaves(ctx context.Context, refused <-chan error) error {
	select {
	case <-c.running.exited:
		return c.running.failure() // why racflow had to end it
	case err := <-refused:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *Process) now() instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current
}
