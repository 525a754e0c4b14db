package host

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

// supervise watches the process and replaces it when it ends.
func (p *Process) supervise() {
	defer close(p.done)
	failures := 0 // in a row, without an answer between them
	for {
		now := p.current // only this goroutine changes it
		why := p.watch(now)
		if p.ctx.Err() != nil {
			now.child.stop(p.host.limits.stop)
			now.session.Close()
			p.publish(incarnation{session: now.session}, p.about(ErrClosed))
			return
		}
		now.child.kill()
		<-now.session.Done()
		if now.session.Answered() > 0 {
			failures = 0
		}
		p.out.log.Warn("the plugin has ended and is started again", "reason", why)
		if !p.restart(&failures) {
			return
		}
	}
}

// watch returns when a process has ended, has stopped or is no longer wanted.
func (p *Process) watch(now incarnation) string {
	tick := time.NewTicker(p.host.limits.healthEvery)
	defer tick.Stop()
	stuck := 0
	for {
		select {
		case <-p.ctx.Done():
			return "closed"
		case <-now.session.Done():
			return "its process ended"
		case <-tick.C:
			if !now.child.healthy(p.ctx, p.host.limits.healthWithin) && p.ctx.Err() == nil {
				return fmt.Sprintf("it gave no sign of life for %v", p.host.limits.healthWithin)
			}
			if !now.session.Stuck() {
				stuck = 0
			} else if stuck++; stuck == 2 {
				return "it answers none of the requests that were cancelled"
			}
		}
	}
}

// restart starts the process anew, several times if need be. It returns false
// when it has given up.
func (p *Process) restart(failures *int) bool {
	open := p.ledger.restarted()
	var last error
	for {
		if *failures++; *failures > p.host.limits.restarts {
			err := p.about(fmt.Errorf("the plugin ended %d times in a row and is not started again%s", *failures, p.out.tail()))
			if last != nil { // launch has named the stage in it
				err = &sdk.Error{Code: sdk.CodeInternal, Err: last}
			}
			p.publish(p.current, err)
			return false
		}
		if !p.pause(*failures) {
			p.publish(p.current, p.about(ErrClosed))
			return false
		}
		next, err := p.launch(p.ctx)
		if err == nil {
			err = p.reopen(next, open)
		}
		if err == nil {
			p.publish(next, nil)
			return true
		}
		last = err
		var config *ConfigError
		if errors.As(err, &config) || errors.Is(err, errChanged) || errors.Is(err, errGone) {
			*failures = p.host.limits.restarts // it will not change its mind
		}
		p.out.log.Warn("the plugin could not be started again", "error", err)
	}
}

var errChanged = errors.New("the plugin's fingerprint has changed while it ran; start the run again")

var errGone = errors.New("the collection has been removed while it was searched; start the run again")

// reopen brings a new process to where the one before it was.
func (p *Process) reopen(next incarnation, open []*stagepb.Open) error {
	err := error(nil)
	if next.print != p.fingerprint || next.print == "" && next.plugin != p.plugin {
		err = errChanged
	}
	for _, o := range open {
		if err != nil {
			break
		}
		var reply *stagepb.Reply
		reply, err = next.session.Call(p.ctx, &stagepb.Request{Body: &stagepb.Request_Open{Open: o}})
		if err == nil && reply.GetFailure() != nil {
			p.hide(reply)
			err = fmt.Errorf("open %s again: %w", o.GetCollection(), wire.DecodeFailure(reply.GetFailure()))
		} else if err == nil && p.ledger.gone(o, reply.GetCollection()) {
			err = fmt.Errorf("open %s again: %w", o.GetCollection(), errGone)
		}
	}
	if err != nil {
		next.child.kill()
		next.session.Close()
	}
	return err
}

// publish makes the outcome of a restart known to those who wait for it.
func (p *Process) publish(next incarnation, failed error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current, p.failed = next, failed
	close(p.changed)
	p.changed = make(chan struct{})
}

// pause waits before the nth restart in a row, each time longer, and never
// exactly as long as others do.
func (p *Process) pause(n int) bool {
	wait := min(p.host.limits.backoff<<(n-1), 5*time.Second)
	wait = wait/2 + rand.N(wait)
	select {
	case <-time.After(wait):
		return true
	case <-p.ctx.Done():
		return false
	}
}
