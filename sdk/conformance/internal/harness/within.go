package harness

import (
	"context"
	"fmt"
	"path"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

// grace is how long a check gets to end after its deadline, and what it has started to end
// after that; tests shorten it.
var grace = 5 * time.Second

// Check runs a check of t, unless the options leave it out, with a deadline of its own: one that
// hangs or panics has failed, its processes are closed, and the rest goes on.
func Check(t T, o *Options, name string, limit time.Duration, check func(T)) {
	t.Helper()
	if o.Within > 0 {
		limit = o.Within
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), limit, fmt.Errorf("the check did not end within %v", limit))
	defer cancel()
	run(ctx, t, o, name, check)
}

func run(ctx context.Context, t T, o *Options, name string, check func(T)) {
	t.Helper()
	if reason, ok := o.leftOut(name); ok {
		if reason == "" {
			t.Fatalf("left out without a reason")
		}
		t.Skipf("left out: %s", reason)
	}
	c := &checking{T: t, ctx: ctx, options: o, path: name}
	done := make(chan struct{})
	go func() { // Goexit ends it
		defer close(done)
		defer c.cleanUp()
		defer func() {
			if r := recover(); r != nil {
				c.Errorf("the check panicked: %v\n%s", r, debug.Stack())
			}
		}()
		check(c)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		select {
		case <-done:
		case <-time.After(grace):
		}
		c.Errorf("%v", context.Cause(ctx))
	}
	if reason := c.leave(); reason != "" {
		t.Skipf("%s", reason)
	}
}

// checking is a T for a check that runs in a goroutine of its own. What it says after it was given
// up is not heard.
type checking struct {
	T
	ctx     context.Context
	options *Options
	path    string

	mu       sync.Mutex
	left     bool
	skipped  string
	cleanups []func()
}

// leave gives the check up and returns why it was skipped.
func (c *checking) leave() string {
	c.cleanUp()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = true
	return c.skipped
}

// cleanUp does what Cleanup was told, each within a bounded time.
func (c *checking) cleanUp() {
	for {
		c.mu.Lock()
		n := len(c.cleanups)
		if n == 0 {
			c.mu.Unlock()
			return
		}
		last := c.cleanups[n-1]
		c.cleanups = c.cleanups[:n-1]
		c.mu.Unlock()
		done := make(chan struct{})
		go func() { defer close(done); last() }()
		select {
		case <-done:
		case <-time.After(grace):
		}
	}
}

// heard calls say unless the check was given up.
func (c *checking) heard(say func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.left {
		say()
	}
}

func (c *checking) Context() context.Context { return c.ctx }

func (c *checking) Logf(format string, args ...any) {
	c.T.Helper()
	c.heard(func() { c.T.Helper(); c.T.Logf(format, args...) })
}

func (c *checking) Errorf(format string, args ...any) {
	c.T.Helper()
	c.heard(func() { c.T.Helper(); c.T.Errorf(format, args...) })
}

func (c *checking) Fatalf(format string, args ...any) {
	c.T.Helper()
	c.Errorf(format, args...)
	runtime.Goexit()
}

func (c *checking) Skipf(format string, args ...any) {
	c.heard(func() { c.skipped = fmt.Sprintf(format, args...) })
	runtime.Goexit()
}

func (c *checking) Cleanup(f func()) {
	c.mu.Lock()
	left := c.left
	if !left {
		c.cleanups = append(c.cleanups, f)
	}
	c.mu.Unlock()
	if left {
		f()
		runtime.Goexit()
	}
}

func (c *checking) TempDir() (dir string) {
	c.heard(func() { dir = c.T.TempDir() })
	if dir == "" {
		runtime.Goexit()
	}
	return dir
}

// Run shares the deadline with the check that it is a part of.
func (c *checking) Run(name string, check func(T)) bool {
	if c.ctx.Err() != nil {
		runtime.Goexit()
	}
	return c.T.Run(name, func(t T) { run(c.ctx, t, c.options, path.Join(c.path, name), check) })
}
