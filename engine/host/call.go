package host

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

// caller is a Process as its Stage calls it.
type caller struct{ *Process }

// Invoke sends a request to whichever process there is. Where that ends before
// it has answered, a request that changes nothing is sent again, alone: a
// batch that a plugin cannot survive then takes no other with it. One that is sent
// alone from the start has ended a process before, as a part of a larger batch: it
// gets no second chance. But a single row is blamed only for the end of a process that
// had answered nothing else, unless that is hard to come by.
func (p caller) Invoke(ctx context.Context, method string, request, reply any, options ...grpc.CallOption) (err error) {
	p.waits.begin()
	defer func() { p.waits.end(err == nil) }()
	attempts, most := p.host.limits.attempts, 2*p.host.limits.attempts
	if wire.IsAlone(ctx) {
		attempts = 1
	}
	answer := reply.(proto.Message)
	for attempt := 0; ; {
		wire.Await(ctx, true)
		now, err := p.live(ctx)
		if err != nil {
			return err
		}
		if err := p.replay.before(request); err != nil {
			return sdk.Transient(p.about(err), 0) // a caller that starts over can succeed
		}
		sending := ctx
		if attempt > 0 {
			sending = wire.Alone(ctx)
			proto.Reset(answer)
		}
		err = now.conn.Invoke(sending, method, request, reply, options...)
		switch {
		case err == nil:
			p.hide(answer)
			p.sign(answer)
			p.blame(ctx, method, request, failed(answer.(failing)))
			if answer.(failing).GetFailure() == nil {
				p.replay.after(request, reply)
			}
			return nil
		case errors.Is(err, wire.ErrUnsent):
			continue
		case !errors.Is(err, wire.ErrLost):
			if sdk.CodeOf(err) == sdk.CodeDeadline {
				p.settle(now)
				p.blame(ctx, method, request, err)
			} else if errors.As(err, new(*wire.StatusError)) {
				p.blame(ctx, method, request, err)
			}
			return p.explain(err)
		}
		select {
		case <-now.ended.done:
		case <-p.ctx.Done():
			return p.about(ErrClosed)
		}
		if _, changes := changeOf(request); changes {
			return sdk.Transient(p.lost(now), 0)
		}
		if now.ended.deaf.Load() {
			continue // another request is to blame
		}
		worn := wire.IsBlamed(ctx) && !(wire.IsAlone(sending) && now.conn.Answered() == now.opened)
		if attempt++; attempt >= attempts && (!worn || attempt >= most) {
			err := p.crashed(attempt, now.ended.why)
			p.blame(ctx, method, request, err)
			return err
		}
	}
}

// Fit streams rows to whichever process there is. They come once: where that ends before it
// has answered, the caller begins again.
func (p caller) Fit(ctx context.Context, rows iter.Seq2[*stagepb.FitRequest, error]) (reply *stagepb.FitReply, err error) {
	p.waits.begin()
	defer func() { p.waits.end(err == nil) }()
	for {
		now, err := p.live(ctx)
		if err != nil {
			return nil, err
		}
		reply, err := now.conn.Fit(ctx, rows)
		switch {
		case err == nil:
			p.hide(reply)
			p.sign(reply)
			return reply, nil
		case errors.Is(err, wire.ErrUnsent):
			continue
		case errors.Is(err, wire.ErrLost):
			return nil, sdk.Transient(p.about(ErrRestarted), 0)
		case sdk.CodeOf(err) == sdk.CodeDeadline:
			p.settle(now)
		}
		return nil, p.explain(err)
	}
}

// sign names the stage, and the plugin of a third party, in the failures that the stage does
// not account for.
func (p *Process) sign(answer proto.Message) {
	by := p.name()
	if p.plugin.name != "" {
		by = p.title
	}
	sign := func(f *stagepb.Failure) {
		if isInternal(f) {
			f.Message = by + ": " + f.GetMessage()
		}
	}
	sign(answer.(failing).GetFailure())
	if rows, ok := answer.(interface{ GetErrors() []*stagepb.RowError }); ok {
		for _, e := range rows.GetErrors() {
			sign(e.GetFailure())
		}
	}
}

// explain names the stage in the error of a plugin that breaks the protocol, without secrets.
func (p *Process) explain(err error) error {
	if e := new(wire.StatusError); errors.As(err, &e) {
		e.Message = p.out.secrets.Message(e.Message)
		return fmt.Errorf("%s: %w", p.title, e)
	}
	return err
}

// crashed is the error of a request that has ended the process so many times.
func (p *Process) crashed(times int, why string) error {
	how := fmt.Sprintf("%d times", times)
	if times == 1 {
		how = "again"
	}
	return &sdk.Error{Code: sdk.CodeInternal, Err: fmt.Errorf("%s: %w while it worked on this, %s: %s", p.title, sdk.ErrCrashed, how, why)}
}

// lost is the error of a change during which the process ended.
func (p *Process) lost(now instance) error {
	if now.ended.deaf.Load() {
		return p.about(ErrRestarted)
	}
	return fmt.Errorf("%s: %w while it worked on this (%w): %s", p.title, sdk.ErrCrashed, ErrRestarted, now.ended.why)
}

func (p *Process) about(err error) error {
	return &sdk.Error{Code: sdk.CodeInternal, Err: fmt.Errorf("%s: %w", p.name(), err)}
}

// live returns a living process. While one is being restarted it waits.
func (p *Process) live(ctx context.Context) (instance, error) {
	for {
		p.mu.Lock()
		now, changed, failed := p.current, p.changed, p.failed
		p.mu.Unlock()
		switch {
		case failed != nil:
			return instance{}, failed
		case p.ctx.Err() != nil:
			return instance{}, p.about(ErrClosed)
		case !now.conn.Ended():
			return now, nil
		}
		select {
		case <-changed:
		case <-p.ctx.Done():
		case <-ctx.Done():
			return instance{}, wire.Ended(ctx)
		}
	}
}
