package host

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"github.com/racflow/racflow/engine/internal/process/confine"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/support"
	"github.com/racflow/racflow/sdk/wire"
)

// isInternal reports whether a failure has sdk.CodeInternal: a mistake of the stage, or no code given.
func isInternal(f *stagepb.Failure) bool {
	return sdk.CodeOf(wire.DecodeFailure(f)) == sdk.CodeInternal
}

// ended describes the end of one process to its callers.
type ended struct {
	done chan struct{} // closed once why is set
	why  string        // includes its last output
	deaf atomic.Bool   // racflow ended it, because it worked on a request past its time limit

	silent bool // racflow ended it, because it gave no sign of life
}

func newEnded() *ended { return &ended{done: make(chan struct{})} }

// exit waits until a process with a broken connection has exited, and returns how it ended.
func (p *Process) exit(now instance) string {
	how := now.process.exit(p.host.limits.stop)
	<-now.conn.Done()
	now.unshare()
	now.ended.why = how + p.out.tail()
	p.out.forget()
	close(now.ended.done)
	return how
}

// exit waits until a process with a broken connection has exited, kills it if it does not, and
// returns how it ended. It does not kill at once, because that would hide the process's own exit
// status.
func (c *process) exit(grace time.Duration) string {
	running := c.running
	if running.failure() == nil {
		select {
		case <-running.ended:
		case <-time.After(grace):
			running.fail(errors.New("it closed its connection and was ended"))
		}
	}
	c.kill()
	if reason := running.failure(); reason != nil {
		return reason.Error()
	}
	select {
	case <-running.exited:
	default:
		return "it does not even end when it is killed"
	}
	how := describeExit(running.exit)
	if at := running.out.panicked(); at != "" {
		how += ", " + at
	}
	return how
}

// failed ends a process that is not supervised yet, because a call failed with err, and returns why:
// how the process ended if it did so itself.
func (c *process) failed(err error, grace time.Duration) error {
	if errors.Is(err, wire.ErrLost) || errors.Is(err, wire.ErrUnsent) {
		return fmt.Errorf("%w: %s", err, c.exit(grace))
	}
	c.kill()
	if reason := c.running.failure(); reason != nil {
		err = reason
	}
	if e := new(wire.StatusError); errors.As(err, &e) {
		e.Message = c.running.out.secrets.Shown(e.Message)
	}
	return err
}

// call makes a call that every plugin answers.
func (c *process) call(ctx context.Context, method string, request, reply proto.Message) error {
	return wire.Explain(ctx, c.conn, method, c.conn.Invoke(ctx, method, request, reply))
}

// describeExit says how a process ended.
func describeExit(exit confine.Exit) string {
	if exit.Signal == 0 {
		return fmt.Sprintf("exit status %d", exit.Status)
	}
	how := fmt.Sprintf("killed by signal %d (%s)", exit.Signal, unix.SignalName(exit.Signal))
	if exit.Signal == syscall.SIGKILL {
		how += ", which is also what the system does when memory ends: give it more, or bound what stages hold with memory = \"2GiB\""
	}
	return how
}

// settle runs after a request has exceeded its time limit. It waits until the process has noticed,
// kills one that keeps working, and waits for the next process, so that this does not use up the
// time of later requests.
func (p *Process) settle(now instance) {
	within, cancel := context.WithTimeout(p.ctx, p.host.limits.deaf)
	defer cancel()
	if !now.conn.Settle(within) && p.ctx.Err() == nil {
		now.process.running.fail(fmt.Errorf("racflow ended it, since it still worked on a request %v after its time was over", p.host.limits.deaf))
		now.ended.deaf.Store(true)
		_ = now.process.running.Kill(p.ctx)
		select {
		case <-now.conn.Done():
		case <-p.ctx.Done():
		}
	}
	_, _ = p.live(p.ctx) // the next request returns the error, too
}

// supervise watches the process and restarts it when it ends.
func (p *Process) supervise() {
	defer close(p.done)
	ends := 0 // ends in a row, without an answer between them
	for {
		now := p.current // only this goroutine changes current
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

// watch returns when a process has ended, hangs or is no longer needed.
func (p *Process) watch(now instance) {
	tick := time.NewTicker(p.host.limits.healthEvery)
	defer tick.Stop()
	if p.spec.Debug {
		tick.Stop() // a debugger may pause the process for long
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
				now.ended.silent = true
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

// longestCrashes is how many ends in a row lengthen the pause before a restart: the search for the
// row to blame needs a running process.
const longestCrashes = 3

// restart starts the process again, with several attempts if necessary. It returns false when it
// has given up.
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
		hopeless := errors.As(err, &config) || errors.Is(err, errChanged) || errors.Is(err, errGone) || errors.Is(err, errReplaced) // another attempt would fail, too
		if failures++; hopeless || failures == p.host.limits.restarts {
			p.giveUp(err) // the error names the stage
			return false
		}
	}
}

// giveUp makes all requests fail from now on: no further process starts.
func (p *Process) giveUp(err error) {
	p.publish(p.current, &sdk.Error{Code: sdk.CodeUnavailable, Err: err})
}

var errChanged = errors.New("the plugin's fingerprint has changed while it ran; start the run again")

var errGone = errors.New("the collection has been removed while it was searched; start the run again")

var errReplaced = errors.New("another collection has taken its place while it was searched; start the run again")

// reopen brings a new process into the state of the previous one.
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
		err = fmt.Errorf("%s: %w", p.title, next.process.failed(err, p.host.limits.stop))
		next.end()
	}
	return err
}

// attach makes a new process attach the same collection, by its ID, as the previous one. Any other
// collection is an error.
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

// publish sets the result of a restart and wakes the calls that wait for it.
func (p *Process) publish(next instance, failed error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current, p.failed = next, failed
	close(p.changed)
	p.changed = make(chan struct{})
}
