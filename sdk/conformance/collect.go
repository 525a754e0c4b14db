package conformance

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

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
	Name     string
	Status   Status
	Messages []string // what is wrong, or why it was skipped
	Why, Fix string   // of a check that failed
	Log      []string // the last lines that the stage wrote during a check that failed
	Took     time.Duration
}

// logged is how many lines of a stage's log a result has.
const logged = 12

// Collect runs checks outside of a Go test, with folders below dir, and calls done with each
// outcome. It stops when ctx ends.
func Collect(ctx context.Context, dir string, s *Subject, checks []Check, done func(Result)) {
	for _, c := range checks {
		if ctx.Err() != nil {
			return
		}
		started := time.Now()
		r := &recorder{ctx: ctx, dir: dir, status: Passed}
		r.Run(c.Name, func(t T) { c.run(t, s) })
		result := Result{Name: c.Name, Status: r.status, Messages: r.messages, Took: time.Since(started)}
		if r.status == Failed {
			result.Why, result.Fix, result.Log = c.Why, c.Fix, r.log
		}
		done(result)
	}
}

// recorder is a T that notes what a check says. Its parts run in goroutines of their own, which
// Fatalf and Skipf end, and note it with the whole.
type recorder struct {
	ctx    context.Context
	dir    string
	parent *recorder

	mu       sync.Mutex
	status   Status
	messages []string
	log      []string
	cleanups []func()
}

func (r *recorder) Helper() {}

func (r *recorder) Context() context.Context { return r.ctx }

func (r *recorder) note(status Status, line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if status == Failed && r.status == Skipped {
		r.messages = nil
	}
	if status == Failed || r.status == Passed {
		r.status = status
	}
	if status == r.status {
		r.messages = append(r.messages, line)
	}
}

func (r *recorder) Errorf(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	r.note(Failed, line)
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Skipf(format string, args ...any) {
	r.note(Skipped, fmt.Sprintf(format, args...))
	runtime.Goexit()
}

func (r *recorder) Logf(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, strings.Split(line, "\n")...)
	r.log = r.log[max(0, len(r.log)-logged):]
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status == Failed
}

func (r *recorder) TempDir() string {
	dir, err := os.MkdirTemp(r.dir, "check-")
	if err != nil {
		r.Fatalf("make a folder: %v", err)
	}
	r.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

// Run runs a part. A failure is noted with the whole; a skip is only where all of it was skipped,
// as that of a check's first part is.
func (r *recorder) Run(name string, check func(T)) bool {
	sub := &recorder{ctx: r.ctx, dir: r.dir, status: Passed, parent: r}
	done := make(chan struct{})
	go func() { // Fatalf and Skipf end it
		defer close(done)
		check(sub)
	}()
	<-done
	for _, f := range slices.Backward(sub.cleanups) {
		f()
	}
	r.join(name, sub)
	return sub.status != Failed
}

func (r *recorder) join(name string, sub *recorder) {
	for _, line := range sub.messages {
		if r.parent != nil { // a part of a check
			line = name + ": " + line
		}
		if sub.status == Failed || r.parent == nil {
			r.note(sub.status, line)
		}
	}
	for _, line := range sub.log {
		r.Logf("%s", line)
	}
}
