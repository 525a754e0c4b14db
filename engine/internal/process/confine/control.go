package confine

import (
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"
)

// Supported reports whether Command confines programs on this system.
const Supported = runtime.GOOS == "linux"

// Control starts, observes and ends one program.
type Control struct {
	cmd   *exec.Cmd
	ended chan Exit
	pid   atomic.Int64
	keep  *keeper // nil: the program starts directly
}

// Plain returns the Control of a program that starts unconfined. Its process group ends with it.
func Plain(cmd *exec.Cmd) *Control { return &Control{cmd: cmd, ended: make(chan Exit, 1)} }

// Start starts the program. After nil the program runs; an error is what exec.Cmd.Start would have
// returned for it, or says why the program could not be confined.
func (c *Control) Start() error {
	// A group of its own: racflow handles Ctrl-C at the terminal.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if c.keep != nil {
		return c.keep.start(c)
	}
	if err := c.cmd.Start(); err != nil {
		return err
	}
	c.pid.Store(int64(c.cmd.Process.Pid))
	go func() {
		_ = c.cmd.Wait() // ProcessState has the details
		c.killGroup()    // its remaining children
		c.ended <- c.exit()
	}()
	return nil
}

// PID returns the process id of the program; 0: it has not started.
func (c *Control) PID() int { return int(c.pid.Load()) }

// Kept reports whether the program's parent is a process of its own that adopts the program's
// orphaned children.
func (c *Control) Kept() bool { return c.keep != nil }

// Ended delivers once how the program ended, after all its child processes have ended.
func (c *Control) Ended() <-chan Exit { return c.ended }

// End kills the program and its child processes.
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

// exit returns how a directly started process ended.
func (c *Control) exit() Exit {
	state := c.cmd.ProcessState
	e := Exit{PID: c.PID(), Status: state.ExitCode()}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.Status, e.Signal = 0, status.Signal()
	}
	return e
}
