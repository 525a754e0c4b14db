package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/racflow/racflow/sdk/support"
)

// Forever is the time limit of what a debugger looks at: ten years.
const Forever = 10 * 365 * 24 * time.Hour

// debugged changes how a process is started so that a debugger can look at it.
func (l *launch) debugged() {
	if l.program != nil {
		p := *l.program
		p.Allow.Unconfined = true
		l.program = &p
	}
	l.environment = append(l.environment, support.NoDumpVariable+"=1")
	l.start = Forever
}

// awaitDebugger waits, before the stage is opened, until whoever asked for it is ready.
func (p *Process) awaitDebugger(ctx context.Context, c *process) error {
	if p.host.options.Debugging == nil {
		return nil
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-c.running.exited:
			cancel()
		case <-waiting.Done():
		}
	}()
	err := p.host.options.Debugging(waiting, p.name(), c.running.plugin())
	if err != nil && ctx.Err() == nil && waiting.Err() != nil {
		return errors.New("the process ended before a debugger was attached")
	}
	return err
}

// Attached waits until a debugger traces a process. Only Linux tells.
func Attached(ctx context.Context, pid int) error {
	for {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return fmt.Errorf("see whether a debugger is attached: %w", err)
		}
		_, tracer, _ := strings.Cut(string(status), "\nTracerPid:\t")
		if tracer != "" && !strings.HasPrefix(tracer, "0\n") {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}
