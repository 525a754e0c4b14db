package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/support"
	"github.com/racflow/racflow/sdk/wire"
)

// supervise watches the process and replaces it when it ends.
func (p *Process) supervise() {
	defer close(p.done)
	ends := 0 // in a row, without an answer between them
	for {
		now := p.current // only this goroutine changes it
		p.watch(now)
		if p.ctx.Err() != nil {
			now.process.stop(p.host.limits.stop)
			now.end()
			p.publish(instance{conn: now.conn}, p.about(ErrClosed))
			return
		}
		how := p.exit(now)
		if now.conn.Answered() > now.opened {
			ends = 0
		}
		if ends++; ends > p.host.limits.ends {
			p.giveUp(fmt.Errorf("%s ended %d times in a row, whatever it was asked, and is not started again: %s", p.title, ends, now.ended.why))
			return
		}
		p.out.log.Warn("the plugin has ended and is started again", "reason", how)
		if !p.restart(ends) {
			return
		}
		if restarted := p.host.options.Restarted; restarted != nil {
			restarted(p.name(), how)
		}
	}
}

// watch returns when a process has ended, has stopped or is no longer wanted.
func (p *Process) watch(now instance) {
	tick := time.NewTicker(p.host.limits.healthEvery)
	defer tick.Stop()
	if p.spec.Debug {
		tick.Stop() // a debugger stops it
	}
	stuck := 0
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-now.conn.Done():
			return
		case <-tick.C:
			within, cancel := context.WithTimeout(p.ctx, p.host.limits.healthWithin)
			overdue, ok := now.conn.Alive(within)
			cancel()
			if !ok && p.ctx.Err() == nil {
				now.process.running.fail(fmt.Errorf("racflow ended it, since it gave no sign of life for %v", p.host.limits.healthWithin))
				return
			}
			if overdue < wire.Window {
				stuck = 0
			} else if stuck++; stuck == 2 {
				now.process.running.fail(fmt.Errorf("racflow ended it, since it still works on %d requests that were cancelled", overdue))
				return
			}
		}
	}
}

// longestCrashes is how many ends in a row lengthen the pause before the next
// process: one that starts is needed to find the row that ends it.
const longestCrashes = 3

// restart starts the process anew, several times if need be. It returns false
// when it has given up.
func (p *Process) restart(ends int) bool {
	open := p.replay.restarted()
	for failures := 0; ; {
		if support.SleepFor(p.ctx, p.host.limits.backoff.Delay(min(ends, longestCrashes)+failures)) != nil {
			p.publish(p.current, p.about(ErrClosed))
			return false
		}
		next, err := p.launch(p.ctx)
		if err == nil {
			err = p.reopen(next, open)
		}
		if err == nil {
			next.opened = next.conn.Answered()
			p.publish(next, nil)
			return true
		}
		p.out.log.Warn("the plugin could not be started again", "error", err)
		var config *ConfigError
		hopeless := errors.As(err, &config) || errors.Is(err, errChanged) || errors.Is(err, errGone) || errors.Is(err, errReplaced) // it will not change its mind
		if failures++; hopeless || failures == p.host.limits.restarts {
			p.giveUp(err) // launch has named the stage in it
			return false
		}
	}
}

// giveUp fails all requests from now on: no process is started any more.
func (p *Process) giveUp(err error) {
	p.publish(p.current, &sdk.Error{Code: sdk.CodeUnavailable, Err: err})
}

var errChanged = errors.New("the plugin's fingerprint has changed while it ran; start the run again")

var errGone = errors.New("the collection has been removed while it was searched; start the run again")

var errReplaced = errors.New("another collection has taken its place while it was searched; start the run again")

// reopen brings a new process to where the one before it was.
func (p *Process) reopen(next instance, open []*stagepb.OpenCollectionRequest) error {
	err := error(nil)
	if next.print != p.fingerprint || next.print == "" && next.plugin != p.plugin {
		err = errChanged
	}
	for _, o := range open {
		if err != nil {
			break
		}
		reply := &stagepb.OpenCollectionReply{}
		err = next.conn.Invoke(p.ctx, stagepb.Stage_OpenCollection_FullMethodName, o, reply)
		if err == nil && reply.GetFailure() != nil {
			p.hide(reply)
			err = fmt.Errorf("open %s again: %w", o.GetCollection(), wire.DecodeFailure(reply.GetFailure()))
		} else if err == nil && p.replay.gone(o, reply.GetCollection()) {
			err = fmt.Errorf("open %s again: %w", o.GetCollection(), errGone)
		}
	}
	if id := p.replay.attachment(); id != "" && err == nil {
		err = p.attach(next, id)
	}
	if err != nil {
		next.process.kill()
		next.end()
	}
	return err
}

// attach has a new process attach what the one before it had attached: the collection with that ID,
// and no other.
func (p *Process) attach(next instance, id string) error {
	reply := &stagepb.AttachReply{}
	if err := next.conn.Invoke(p.ctx, stagepb.Stage_Attach_FullMethodName, &stagepb.AttachRequest{}, reply); err != nil {
		return err
	}
	p.hide(reply)
	if reply.GetFailure() != nil {
		return fmt.Errorf("attach the collection again: %w", wire.DecodeFailure(reply.GetFailure()))
	}
	if errs := wire.DecodeArgumentErrors(reply.GetErrors()); len(errs) > 0 {
		return fmt.Errorf("attach the collection again: %w", errs[0])
	}
	if now := reply.GetAttached(); now.GetId() != id {
		return fmt.Errorf("attach %s again: %w", now.GetName(), errReplaced)
	}
	return nil
}

// publish makes the outcome of a restart known to those who wait for it.
func (p *Process) publish(next instance, failed error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current, p.failed = next, failed
	close(p.changed)
	p.changed = make(chan struct{})
}
