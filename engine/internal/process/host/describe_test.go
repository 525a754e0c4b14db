package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// A stage under a debugger waits before it is opened, stays readable, and is not ended when it stands
// still.
func TestDebug(t *testing.T) {
	h, log := newHost(t)
	h.limits.healthEvery, h.limits.healthWithin, h.limits.start = time.Millisecond, time.Millisecond, time.Nanosecond
	var asked []string
	h.options.Debugging = func(_ context.Context, stage string, pid int) error {
		asked = append(asked, fmt.Sprint(stage, " ", pid))
		if strings.Contains(log.String(), "opened with") {
			t.Error("it was opened before the debugger was there")
		}
		return nil
	}
	p := start(t, h, Spec{Debug: true})
	pid, err := ask(t, p, "pid")
	if err != nil || len(asked) != 1 || asked[0] != "sample.it "+pid {
		t.Errorf("asked for %q, and it is %s, %v", asked, pid, err)
	}
	if got, err := ask(t, p, "environment"); err != nil || !strings.Contains(got+"\n", "\nRACFLOW_DUMPABLE=1\n") {
		t.Errorf("the environment is %s, %v", got, err)
	}
	var n int
	_, _ = fmt.Sscan(pid, &n)
	must.Do(t, syscall.Kill(n, syscall.SIGSTOP))
	h.limits.start = patience
	start(t, h, Spec{}) // when this one is ended for standing still, the other would have been ended, too
	other := 0
	h.mu.Lock()
	for p := range h.processes {
		if !p.spec.Debug {
			p.mu.Lock()
			other = p.current.process.running.plugin()
			p.mu.Unlock()
		}
	}
	h.mu.Unlock()
	_ = syscall.Kill(other, syscall.SIGSTOP) // unless it has already been ended for being slow
	waitFor(t, "a process that stands still is ended", func() bool { return strings.Contains(log.String(), "no sign of life") })
	if err := syscall.Kill(n, syscall.SIGCONT); err != nil {
		t.Error(err)
	}
	if again, err := ask(t, p, "pid"); again != pid || err != nil {
		t.Errorf("it was %s and is %s, %v", pid, again, err)
	}
	h.options.Debugging = func(context.Context, string, int) error { return errors.New("no, thanks") }
	if _, err := h.Start(t.Context(), Spec{Kind: "sample", Use: "echo", Block: "it", Debug: true}); err == nil || !strings.Contains(err.Error(), "sample.it: no, thanks") {
		t.Errorf("given up: %v", err)
	}
}

func TestAttached(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells")
	}
	runtime.LockOSThread() // this thread traces
	defer runtime.UnlockOSThread()
	c := exec.Command("cat")
	c.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	stdin, err := c.StdinPipe()
	must.Do(t, err)
	if err := c.Start(); err != nil {
		t.Skip("nothing may be traced here:", err)
	}
	if err := Attached(t.Context(), c.Process.Pid); err != nil {
		t.Error(err)
	}
	_ = c.Process.Kill()
	_ = stdin.Close()
	_ = c.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Attached(ctx, os.Getpid()); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody traces this process: %v", err)
	}
	if err := Attached(t.Context(), c.Process.Pid); err == nil {
		t.Error("a process that has ended is traced")
	}
}

// TestProbe ends a process in the ways of plugin checks, and finds it restarted.
func TestProbe(t *testing.T) {
	h, err := New(Options{StopTimeout: patience})
	must.Do(t, err)
	t.Cleanup(h.Close)
	p := start(t, h, Spec{Kind: sdk.KindSample, Use: "echo", Block: "echo"})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for what, end := range map[string]func() error{
		"hang up":  func() error { return p.HangUp(ctx) },
		"shutdown": func() error { return p.Shutdown(ctx) },
		"kill":     func() error { return p.Kill(t.Context()) },
	} {
		before := p.PID()
		if err := end(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := p.Sample(ctx, say("a")); err != nil {
			t.Errorf("after %s: %v", what, err)
		}
		if after := p.PID(); after == before || after < 2 || !p.Alive(ctx) {
			t.Errorf("after %s: process %d follows %d", what, after, before)
		}
	}
	over, done := context.WithTimeout(t.Context(), time.Nanosecond)
	defer done()
	if p.Alive(over) {
		t.Error("a sign of life after its time")
	}
}
