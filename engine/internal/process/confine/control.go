package confine

import (
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"
)

// Supported reports whether Command confines anything on this system.
const Supported = runtime.GOOS == "linux"

// Control is a hold on one program, from its start to its end.
type Control struct {
	cmd   *exec.Cmd
	ended chan Exit
	pid   atomic.Int64
	keep  *keeper // nil: it is started directly
}

// Plain is a hold on a program that is started as it is. Its process group ends with it.
func Plain(cmd *exec.Cmd) *Control { return &Control{cmd: cmd, ended: make(chan Exit, 1)} }

// Start starts the program. When it returns nil the program runs; an error is what
// exec.Cmd.Start would have returned for it, or says why it could not be confined.
func (c *Control) Start() error {
	// A group of its own: Ctrl-C at the terminal is for racflow to handle.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if c.keep != nil {
		return c.keep.start(c)
	}
	if err := c.cmd.Start(); err != nil {
		return err
	}
	c.pid.Store(int64(c.cmd.Process.Pid))
	go func() {
		_ = c.cmd.Wait() // ProcessState says more
		c.killGroup()    // what it has started
		c.ended <- c.exit()
	}()
	return nil
}

// PID is the process id of the program; 0: it has not started.
func (c *Control) PID() int { return int(c.pid.Load()) }

// Keeper is the process id of the process that keeps the program; 0: none, it was started
// directly. What the program has started and left is a child of this process.
func (c *Control) Keeper() int {
	if c.keep == nil || c.cmd.Process == nil {
		return 0
	}
	return c.cmd.Process.Pid
}

// Ended delivers, once, how the program ended, when nothing is left of what it has started.
func (c *Control) Ended() <-chan Exit { return c.ended }

// End ends the program at once, whatever state it is in, and what it has started.
func (c *Control) End() {
	if c.keep != nil {
		c.keep.end()
		return
	}
	c.killGroup()
}

func (c *Control) killGroup() {
	if pid := c.PID(); pid > 1 {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
}

// exit is how the process that was started directly ended.
func (c *Control) exit() Exit {
	state := c.cmd.ProcessState
	e := Exit{PID: c.PID(), Status: state.ExitCode()}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.Status, e.Signal = 0, status.Signal()
	}
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		e.Peak = usage.Maxrss
		if runtime.GOOS == "linux" {
			e.Peak <<= 10 // it counts in KiB
		}
	}
	return e
}
