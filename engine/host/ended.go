package host

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/racflow/racflow/engine/confine"
)

// ended is the end of one process, as its callers need to know it.
type ended struct {
	done chan struct{} // closed once why is known
	why  string        // with its last words
	deaf atomic.Bool   // it was ended for a request that it went on working on after its time was over
}

func newEnded() *ended { return &ended{done: make(chan struct{})} }

// exit waits until a process whose connection broke has exited, ends it where it
// does not, and says how it ended. The status of a process that is killed here at
// once would hide the one that it had.
func (p *Process) exit(now instance) string {
	process := now.process.running
	if process.failure() == nil {
		select {
		case <-process.ended:
		case <-time.After(p.host.limits.stop):
			process.fail(errors.New("it closed its connection and was ended"))
		}
	}
	now.process.kill()
	<-now.conn.Done()
	now.unshare()
	how := "it does not even end when it is killed"
	select {
	case <-process.exited:
		how = describeExit(process.exit, process.kills)
		if at := p.out.panicked(); at != "" {
			how += ", " + at
		}
	default:
	}
	if reason := process.failure(); reason != nil {
		how = reason.Error()
	}
	now.ended.why = how + p.out.tail()
	p.out.forget()
	close(now.ended.done)
	return how
}

// describeExit says how a process ended, before whose start the kernel had ended so many
// processes for lack of memory.
func describeExit(exit confine.Exit, kills int64) string {
	if exit.Signal == 0 {
		return fmt.Sprintf("exit status %d", exit.Status)
	}
	how := fmt.Sprintf("killed by signal %d (%s)", exit.Signal, unix.SignalName(exit.Signal))
	if exit.Signal != syscall.SIGKILL {
		return how
	}
	return how + explainKill(kills)
}

// settle is called when a request has run out of time. It waits until the process
// has noticed, ends one that works on, and waits for the next: whatever is asked
// now does not spend its time on that.
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
	_, _ = p.live(p.ctx) // an error is that of the next request, too
}
