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
// batch that a plugin cannot survive then takes no other with it. One that is sent
// alone from the start has ended a process before, as a part of a larger batch: it
// gets no second chance.
func (p *Process) call(ctx context.Context, req *stagepb.Request) (reply *stagepb.Reply, err error) {
	p.waits.begin()
	defer func() { p.waits.end(err == nil) }()
	attempts := p.host.limits.attempts
	if remote.IsAlone(ctx) {
		attempts = 1
	}
	for attempt := 0; ; {
		now, err := p.live(ctx)
		if err != nil {
			return nil, err
		}
		if err := p.ledger.before(req); err != nil {
			return nil, sdk.Transient(p.about(err), 0) // a caller that starts over can succeed
		}
		sending := ctx
		if attempt > 0 {
			sending = remote.Alone(ctx)
		}
		reply, err := now.session.Call(sending, &stagepb.Request{Attempt: uint32(attempt), Body: req.GetBody()})
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
			if sdk.CodeOf(err) == sdk.CodeDeadline {
				p.settle(now)
			}
			return nil, err
		}
		select {
		case <-now.ended.done:
		case <-p.ctx.Done():
			return nil, p.about(ErrClosed)
		}
		if _, changes := changeOf(req); changes {
			return nil, sdk.Transient(p.about(ErrRestarted), 0)
		}
		if now.ended.deaf.Load() {
			continue // another request is to blame
		}
		if attempt++; attempt == attempts {
			return nil, p.crashed(attempt, now.ended.why)
		}
	}
}

// crashed is the error of a request that has ended the process so many times.
func (p *Process) crashed(times int, why string) error {
	how := fmt.Sprintf("%d times", times)
	if times == 1 {
		how = "again"
	}
	return &sdk.Error{Code: sdk.CodeInternal, Err: fmt.Errorf("%s: %w while it worked on this, %s: %s", p.title, sdk.ErrCrashed, how, why)}
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

// live returns a living process. While one is being restarted it waits.
func (p *Process) live(ctx context.Context) (incarnation, error) {
	for {
		p.mu.Lock()
		now, changed, failed := p.current, p.changed, p.failed
		p.mu.Unlock()
		switch {
		case failed != nil:
			return incarnation{}, failed
		case p.ctx.Err() != nil:
			return incarnation{}, p.about(ErrClosed)
		case now.session.Err() == nil:
			return now, nil
		}
		select {
		case <-changed:
		case <-p.ctx.Done():
		case <-ctx.Done():
			return incarnation{}, remote.Ended(ctx)
		}
	}
}
