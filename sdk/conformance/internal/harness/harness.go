package harness

import (
	"context"
	"fmt"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/wire"
)

// Options are the settings of the suite for the stage under test.
type Options struct {
	Without   map[string]string // path of checks -> why to leave them out
	DenseOnly string            // why a store is tested without a lexical leg; empty: it has one
	Tolerance float64           // of scores, relative to the larger of 1 and the score
	Restart   func(*T)          // called between closing a store and opening it again
	Short     bool              // skip checks that need much memory or time
	Promptly  time.Duration     // time in which a stage must notice that it is cancelled
	Within    time.Duration     // deadline of every check; 0: Check.Within

	mu  sync.Mutex
	met map[string]bool // paths in Without that exist
}

// NewOptions returns the defaults. Their times are long, for machines that are busy with other
// things.
func NewOptions() *Options {
	return &Options{Without: map[string]string{}, met: map[string]bool{}, Tolerance: 1e-5, Restart: func(*T) {}, Promptly: 10 * time.Second}
}

// Unmet lists the paths to leave out that do not exist.
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

// leftOut returns the reason for leaving a check out, by its path or by a path above it.
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

// Process is a running stage.
type Process struct {
	Stage       *wire.Stage // the engine's end
	Fingerprint string
	Close       func() // may be called again
	Own         any    // whatever else its Starter knows about it
}

// Setup holds the settings with which a stage starts.
type Setup struct {
	Config   string // a JSON object
	StateDir string
	Samples  int
	Log      func(line string)
}

// Starter starts a stage. If the stage refuses its config, Starter returns sdk.ArgumentErrors,
// joined.
type Starter func(context.Context, Setup) (*Process, error)

// Subject is a stage under test.
type Subject struct {
	Stage   sdk.Stage // as it describes itself
	Config  string    // a JSON object that it accepts
	Start   Starter
	Options *Options
}

// Open starts the stage in a process that ends with the check at the latest.
func (s *Subject) Open(t *T, setup Setup) (*Process, error) {
	setup.Log = func(line string) { t.Logf("%s", line) }
	p, err := s.Start(t.Context(), setup)
	if err != nil {
		return nil, err
	}
	t.Cleanup(p.Close)
	return p, nil
}

// Setup returns the settings with which a check starts the stage, with a new state folder.
func (s *Subject) Setup(t *T) Setup {
	setup := Setup{Config: s.Config, StateDir: t.TempDir()}
	switch s.Stage.Kind {
	case sdk.KindRerank, sdk.KindPrompt, sdk.KindSample, sdk.KindElect:
		setup.Samples = 1
	}
	return setup
}

// Deadlines of checks. They are long, for machines that are busy with other things.
const (
	Long    = 2 * time.Minute
	Longest = 5 * time.Minute
)

// Check is one line of the table.
type Check struct {
	Name   string        // may have topics in front, each followed by a slash
	Why    string        // what the engine relies on
	Fix    string        // what to do if it fails
	Within time.Duration // its deadline
	Run    func(*T, *Subject) error
}

// Status is how a check ended.
type Status string

// How a check can end.
const (
	Passed  Status = "passed"
	Failed  Status = "failed"
	Skipped Status = "skipped"
)

// Result is the outcome of one check.
type Result struct {
	Name     string   `json:"name"`
	Status   Status   `json:"status"`
	Seconds  float64  `json:"seconds"`            // that the check took
	Messages []string `json:"messages,omitempty"` // what is wrong, or why it was skipped
	Why      string   `json:"why,omitempty"`      // of a failed check: what the engine relies on
	Fix      string   `json:"fix,omitempty"`      // what to do
	Log      []string `json:"log,omitempty"`      // the last lines that the stage wrote during a failed check
}

// logged is the number of lines of a stage's log in a result.
const logged = 12

// grace is the time that a check gets to end after its deadline, and then again the time for the
// processes that it started. Tests shorten it.
var grace = 5 * time.Second

// On runs the check on a subject, with folders below dir, unless the options leave it out. The check
// has its own deadline. A check that hangs or panics has failed; On closes its processes.
func (c Check) On(ctx context.Context, dir string, s *Subject) Result {
	limit := c.Within
	if s.Options.Within > 0 {
		limit = s.Options.Within
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the check did not end within %v", limit))
	defer cancel()
	began := time.Now()
	t := &T{ctx: ctx, dir: dir, result: Result{Name: c.Name, Status: Passed}}
	done := make(chan struct{})
	go func() { // Fatalf and Skipf end it
		defer close(done)
		defer t.cleanUp()
		defer func() {
			if r := recover(); r != nil {
				t.Errorf("the check panicked: %v\n%s", r, debug.Stack())
			}
		}()
		if reason, ok := s.Options.leftOut(c.Name); ok && reason == "" {
			t.Fatalf("left out without a reason")
		} else if ok {
			t.Skipf("left out: %s", reason)
		}
		if err := c.Run(t, s); err != nil {
			t.Errorf("%v", err)
		}
	}()
	if !ends(done, ctx.Done()) {
		_ = ends(done, time.After(grace))
		t.Errorf("%v", context.Cause(ctx))
	}
	t.cleanUp()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left = true
	t.result.Seconds = time.Since(began).Seconds()
	if t.result.Status == Failed {
		t.result.Why, t.result.Fix = c.Why, c.Fix
	} else {
		t.result.Log = nil
	}
	return t.result
}

// ends reports whether done closes before anything arrives from other.
func ends[T any](done <-chan struct{}, other <-chan T) bool {
	select {
	case <-done:
		return true
	case <-other:
		return false
	}
}

// T is what a check reports to, similar to a testing.T. The check runs in a goroutine of its own. T
// ignores reports after the check was given up.
type T struct {
	ctx context.Context
	dir string

	mu       sync.Mutex
	left     bool
	result   Result
	cleanups []func()
}

// Context ends with the check.
func (t *T) Context() context.Context { return t.ctx }

// Failed reports whether the check has failed.
func (t *T) Failed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.result.Status == Failed
}

// Logf records lines that the stage wrote.
func (t *T) Logf(format string, args ...any) {
	lines := strings.Split(fmt.Sprintf(format, args...), "\n")
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.left {
		t.result.Log = append(t.result.Log, lines...)
		t.result.Log = t.result.Log[max(0, len(t.result.Log)-logged):]
	}
}

// Errorf records what is wrong; the check continues.
func (t *T) Errorf(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.left {
		t.result.Status, t.result.Messages = Failed, append(t.result.Messages, line)
	}
}

// Fatalf is Errorf, and ends the check.
func (t *T) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	runtime.Goexit()
}

// Skipf ends a check that does not apply, unless it has failed before.
func (t *T) Skipf(format string, args ...any) {
	t.mu.Lock()
	if !t.left && t.result.Status == Passed {
		t.result.Status, t.result.Messages = Skipped, []string{fmt.Sprintf(format, args...)}
	}
	t.mu.Unlock()
	runtime.Goexit()
}

// TempDir makes a folder that is removed after the check.
func (t *T) TempDir() string {
	dir, err := os.MkdirTemp(t.dir, "check-")
	if err != nil {
		t.Fatalf("make a folder: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Cleanup calls f after the check, or immediately if the check was given up.
func (t *T) Cleanup(f func()) {
	t.mu.Lock()
	left := t.left
	if !left {
		t.cleanups = append(t.cleanups, f)
	}
	t.mu.Unlock()
	if left {
		f()
		runtime.Goexit()
	}
}

// cleanUp calls the functions that Cleanup got, each within a bounded time.
func (t *T) cleanUp() {
	for {
		t.mu.Lock()
		n := len(t.cleanups)
		if n == 0 {
			t.mu.Unlock()
			return
		}
		last := t.cleanups[n-1]
		t.cleanups = t.cleanups[:n-1]
		t.mu.Unlock()
		done := make(chan struct{})
		go func() { defer close(done); last() }()
		_ = ends(done, time.After(grace))
	}
}

// GivesUp makes calls with many rows and cancels them, early and in the middle of the work. It checks
// that a call with few rows is soon served afterwards. Nobody sees the results of a cancelled call.
func GivesUp(t *T, o *Options, many, few int, call func(ctx context.Context, rows int) error) error {
	if err := call(wire.Alone(t.Context()), few); err != nil { // it may have to set up something
		return err
	}
	for _, pause := range []time.Duration{0, 5 * time.Millisecond, 100 * time.Millisecond} {
		cancelled, cancel := context.WithCancel(t.Context())
		time.AfterFunc(pause, cancel)
		_ = call(cancelled, many)
		cancel()
		alone, cancel := context.WithTimeout(wire.Alone(t.Context()), o.Promptly)
		err := call(alone, few)
		if cancel(); err != nil {
			return fmt.Errorf("%v after a cancelled call: %w", o.Promptly, err)
		}
	}
	return nil
}
