package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/remote"
)

// call sends a request to whichever process there is. Where that ends before
// it has answered, a request that changes nothing is sent again, alone: a
// batch that a plugin cannot survive then takes no other with it.
func (p *Process) call(ctx context.Context, req *stagepb.Request) (*stagepb.Reply, error) {
	for attempt := 0; ; {
		session, err := p.live(ctx)
		if err != nil {
			return nil, err
		}
		if err := p.ledger.before(req); err != nil {
			return nil, sdk.Transient(p.about(err), 0) // a caller that starts over can succeed
		}
		send := session.Call
		if attempt > 0 {
			send = session.CallAlone
		}
		reply, err := send(ctx, &stagepb.Request{Attempt: uint32(attempt), Body: req.GetBody()})
		switch {
		case err == nil:
			p.hide(reply)
			if reply.GetFailure() == nil {
				p.keep(req, reply)
			}
			return reply, nil
		case errors.Is(err, remote.ErrUnsent):
			continue
		case !errors.Is(err, remote.ErrLost):
			return nil, err
		}
		if p.ctx.Err() != nil {
			return nil, p.about(ErrClosed)
		}
		if _, changes := changeOf(req); changes {
			return nil, sdk.Transient(p.about(ErrRestarted), 0)
		}
		if attempt++; attempt == p.host.limits.attempts {
			return nil, p.about(fmt.Errorf("%w: %d times on this batch; with batch = 1 one item fails alone%s", sdk.ErrCrashed, attempt, p.out.tail()))
		}
	}
}

// keep remembers what a successful request means for later processes.
func (p *Process) keep(req *stagepb.Request, reply *stagepb.Reply) {
	if _, ok := req.GetBody().(*stagepb.Request_State); ok {
		p.mu.Lock()
		p.state = reply.GetState()
		p.mu.Unlock()
	}
	p.ledger.after(req, reply)
}

func (p *Process) about(err error) error {
	return &sdk.Error{Code: sdk.CodeInternal, Err: fmt.Errorf("%s: %w", p.name(), err)}
}

// live returns the session of a living process. While one is being restarted
// it waits.
func (p *Process) live(ctx context.Context) (*remote.Session, error) {
	for {
		p.mu.Lock()
		session, changed, failed := p.current.session, p.changed, p.failed
		p.mu.Unlock()
		switch {
		case failed != nil:
			return nil, failed
		case p.ctx.Err() != nil:
			return nil, p.about(ErrClosed)
		case session.Err() == nil:
			return session, nil
		}
		select {
		case <-changed:
		case <-p.ctx.Done():
		case <-ctx.Done():
			return nil, remote.Ended(ctx)
		}
	}
}
