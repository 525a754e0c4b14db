package harness

import (
	"context"
	"fmt"
	"path"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/serve"
	"github.com/racflow/racflow/sdk/wire"
)

// Options are what the suite takes into account at the stage at hand.
type Options struct {
	Without   map[string]string // path of checks -> why they are left out
	DenseOnly string            // why a store is tested without a lexical leg; empty: it has one
	Tolerance float64           // of scores, relative to the larger of 1 and the score
	Restart   func(T)           // between closing a store and opening it again
	Parallel  bool              // the checks may run beside each other
	Short     bool              // without what needs much memory or time
	Promptly  time.Duration     // how long a stage may take to notice that it is cancelled
	Within    time.Duration     // how long any check may take; 0: what the check says

	mu  sync.Mutex
	met map[string]bool // paths in Without that there are
}

// NewOptions returns the defaults. They are long, for machines that are busy with other things.
func NewOptions() *Options {
	return &Options{Without: map[string]string{}, met: map[string]bool{}, Tolerance: 1e-5, Restart: func(T) {}, Promptly: 10 * time.Second}
}

// Unmet lists what was to be left out and does not exist.
func (o *Options) Unmet() []string {
	var all []string
	for p := range o.Without {
		if !o.met[p] {
			all = append(all, p)
		}
	}
	slices.Sort(all)
	return all
}

// leftOut says why a check is left out, by its path or one above it.
func (o *Options) leftOut(check string) (reason string, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for at := check; at != "." && at != "/"; at = path.Dir(at) {
		if reason, ok = o.Without[at]; ok {
			o.met[at] = true
			return strings.TrimSpace(reason), true
		}
	}
	return "", false
}

// Process is a stage that runs.
type Process struct {
	Stage       *wire.Stage // the engine's end
	Fingerprint string
	Close       func() // may be called again

	Server  *serve.Server   // the other end, where it is in this process; nil: it is not
	Arrived <-chan struct{} // gets a value for a call of a kind's method, unless it has one; nil: nobody can know
}

// Setup says how a stage is started.
type Setup struct {
	Config   string // a JSON object
	StateDir string
	Samples  int
	Log      func(line string)
}

// Starter starts a stage. It returns sdk.ArgumentErrors, joined, where the stage refuses its config.
type Starter func(context.Context, Setup) (*Process, error)

// Subject is a stage under test.
type Subject struct {
	Stage   sdk.Stage // as it describes itself
	Config  string    // a JSON object that it accepts
	Start   Starter
	Options *Options
}

// Open starts the stage in a process that ends with the check at the latest.
func (s *Subject) Open(t T, setup Setup) (*Process, error) {
	t.Helper()
	setup.Log = func(line string) { t.Logf("%s", line) }
	p, err := s.Start(t.Context(), setup)
	if err != nil {
		return nil, err
	}
	t.Cleanup(p.Close)
	return p, nil
}

// Setup is how a check starts the stage, with a new state folder.
func (s *Subject) Setup(t T) Setup {
	setup := Setup{Config: s.Config, StateDir: t.TempDir()}
	switch s.Stage.Kind {
	case sdk.KindRerank, sdk.KindPrompt, sdk.KindSample, sdk.KindElect:
		setup.Samples = 1
	}
	return setup
}

// T is what a check reports to: the part of testing.T that the suite needs. testing.TB cannot be
// implemented outside package testing.
type T interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any) // the check has failed, and continues
	Fatalf(format string, args ...any) // the check has failed, and ends here
	Skipf(format string, args ...any)  // the check does not apply, and ends here
	Failed() bool
	Context() context.Context // ends with the check
	TempDir() string          // a new folder that is removed after the check
	Cleanup(func())
	Run(name string, check func(T)) bool // reports whether it passed
}

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
