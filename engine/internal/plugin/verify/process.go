package verify

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/conformance"
	"github.com/racflow/racflow/sdk/wire"
)

// killed kills the process during calls. All calls must still return the same results.
func (v *subject) killed(t *conformance.T, l *conformance.Load, r *running) error {
	const many = 16
	want, err := l.Rows(t.Context(), 0, many)
	if err != nil {
		return err
	}
	before := r.PID()
	calls, ctx := errgroup.WithContext(t.Context())
	for range many {
		calls.Go(func() error { return l.Same(ctx, 0, want) })
	}
	if err := r.Kill(t.Context()); err != nil {
		return fmt.Errorf("process %d was killed, and did not end: %w", before, err)
	}
	if err := calls.Wait(); err != nil {
		return fmt.Errorf("calls to a process that was killed: %w", err)
	}
	if err := l.Same(t.Context(), 0, want); err != nil {
		return fmt.Errorf("after it was killed: %w", err)
	}
	if r.PID() == before {
		return fmt.Errorf("process %d was killed, and is there", before)
	}
	return nil
}

// leaves returns a check that ends calls with end. The process must then end by itself.
func (v *subject) leaves(why string, end func(*running, context.Context) error) func(*conformance.T, *conformance.Subject) error {
	return v.loaded(func(t *conformance.T, l *conformance.Load, r *running) error {
		if _, err := l.Rows(t.Context(), 0, 1); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), v.Options.Promptly, fmt.Errorf("it was still there after %v", v.Options.Promptly))
		defer cancel()
		if err := end(r, ctx); err != nil {
			return fmt.Errorf("after %s: %w", why, err)
		}
		return nil
	})
}

// output asks for a thousand rows and checks what the process writes in the meantime.
func (v *subject) output(t *conformance.T, l *conformance.Load, r *running) error {
	const rows = 1000
	before, bytesBefore, _ := r.said.soFar()
	if err := v.work(t, l, rows, func(int) {}); err != nil {
		return err
	}
	lines, bytes, stdout := r.said.soFar()
	if len(stdout) > 0 {
		return fmt.Errorf("it wrote to standard output: %.200q", stdout)
	}
	if lines, bytes = lines-before, bytes-bytesBefore; lines > rows/10 || bytes > 100*rows {
		return fmt.Errorf("it wrote %d lines, %d bytes, for %d rows", lines, bytes, rows)
	}
	return nil
}

// work asks for rows, each once, for at most 30 seconds. It calls seen with the number of rows so far.
func (v *subject) work(t *conformance.T, l *conformance.Load, rows int, seen func(int)) error {
	end := time.Now().Add(30 * time.Second)
	for n := 0; n < rows && time.Now().Before(end); n += l.Batch() {
		if _, err := l.Rows(t.Context(), n, n+l.Batch()); err != nil {
			return fmt.Errorf("after %d rows: %w", n, err)
		}
		seen(n + l.Batch())
	}
	return nil
}

// slack is how much memory may grow after the first half of the rows. If a fourth of that half's memory is more, that
// much is allowed: garbage collectors make memory vary.
const slack = 16 << 20

// memory compares the memory of the process after the first half of many rows with the memory at the end.
func (v *subject) memory(t *conformance.T, l *conformance.Load, r *running) error {
	if runtime.GOOS != "linux" {
		t.Skipf("the memory of another process is known on Linux only")
	}
	var resident []int64
	worked := 0
	err := v.work(t, l, v.rows, func(n int) { worked = n; resident = append(resident, residentOf(r.PID())) })
	if err != nil {
		return err
	}
	half := len(resident) / 2
	if half < 4 {
		t.Skipf("%d rows took half a minute: too few to see memory grow", worked)
	}
	warm, last := slices.Max(resident[:half]), slices.Min(resident[len(resident)-half/4-1:])
	if grown := last - warm; grown > max(slack, warm/4) {
		return fmt.Errorf("it had at most %d MiB in the first half of %d rows, and at least %d MiB at the end", warm>>20, worked, last>>20)
	}
	return nil
}

// residentOf returns the resident memory in bytes of a process and its children.
func residentOf(pid int) (sum int64) {
	all, _ := procfs.AllProcs()
	children, memory := map[int][]int{}, map[int]int64{}
	for _, p := range all {
		stat, err := p.Stat()
		if err != nil {
			continue // the process has ended
		}
		children[stat.PPID] = append(children[stat.PPID], p.PID)
		memory[p.PID] = int64(stat.ResidentMemory())
	}
	for next := []int{pid}; len(next) > 0; next = next[1:] {
		sum += memory[next[0]]
		next = append(next, children[next[0]]...)
	}
	return sum
}

// loaded returns a check that starts the stage and has work for it.
func (v *subject) loaded(run func(*conformance.T, *conformance.Load, *running) error) func(*conformance.T, *conformance.Subject) error {
	return func(t *conformance.T, _ *conformance.Subject) error {
		l, err := conformance.NewLoad(t, v.Subject)
		if err != nil {
			return err
		}
		r, _ := l.Process.Own.(*running) // as start made it
		return run(t, l, r)
	}
}

// free is loaded for a check that asks for many rows, which may cost money if another machine answers.
func (v *subject) free(run func(*conformance.T, *conformance.Load, *running) error) func(*conformance.T, *conformance.Subject) error {
	return func(t *conformance.T, s *conformance.Subject) error {
		if v.Stage.Network {
			t.Skipf("a thousand rows and more may cost money at another machine")
		}
		return v.loaded(run)(t, s)
	}
}

// checks returns the checks that concern the process.
func (v *subject) checks() []conformance.Check {
	return []conformance.Check{
		{Name: "same fingerprint twice", Within: conformance.Long, Run: v.fingerprint,
			Why: "Results are kept by the fingerprint; a process that is started again in the midst of a run has to have the same.",
			Fix: "Make it of what changes results, such as a model's hash: not of a time, a process id or the order of a map."},
		{Name: "256 calls at a time", Within: conformance.Long, Run: v.loaded(v.together),
			Why: "As many rows as can wait for a language model are asked for at a time, each in a call of its own.",
			Fix: "Let calls work beside each other, and guard what they share; in Python, leave room in the pool of threads."},
		{Name: "gives signs of life", Within: conformance.Long, Run: v.loaded(v.alive),
			Why: "A process that answers no question for ten seconds is taken for one that has stopped, and is ended.",
			Fix: "Do not hold a lock, or Python's interpreter, for long while a call is worked on; answer Alive beside it."},
		{Name: "large messages", Within: conformance.Long, Run: v.loaded(v.large),
			Why: "A message has up to 64 MiB; documents and candidates fill it.",
			Fix: "Set gRPC's limits of message sizes to 64 MiB, both ways, and refuse what is too much with an invalid error."},
		{Name: "a call without time", Within: conformance.Long, Run: v.loaded(v.deadline),
			Why: "A call whose time is over is given up; a process that works on is ended, and all its other calls with it.",
			Fix: "Look at the call's context between rows, and end within five seconds of its deadline."},
		{Name: "little output", Within: conformance.Long, Run: v.free(v.output),
			Why: "Standard output belongs to the engine, and a log that grows with the rows buries what people look for.",
			Fix: "Write to standard error only, and log what concerns single rows at the level debug, if at all."},
		{Name: "bounded memory", Within: conformance.Longest, Run: v.free(v.memory),
			Why: "A run may have millions of rows, and a process lives as long as the run.",
			Fix: "Keep nothing of a row after its call, or bound what is kept."},
		{Name: "killed and started again", Within: conformance.Long, Run: v.loaded(v.killed),
			Why: "A process that ends is started again behind the calls, with the same config and state folder.",
			Fix: "Leave no lock or half a file behind that keeps the next process from starting, and write files whole."},
		{Name: "ends with standard input", Within: conformance.Long, Run: v.leaves("its standard input had ended", (*running).HangUp),
			Why: "When racflow is killed, the end of its standard input is all that a plugin notices.",
			Fix: "Read standard input in a thread, and exit at its end; the SDKs do."},
		{Name: "ends when asked", Within: conformance.Long, Run: v.leaves("it was asked to end", (*running).Shutdown),
			Why: "A stage that is closed can write what it has; one that has to be killed cannot.",
			Fix: "Serve GRPCController.Shutdown, and return from Close; the SDKs do the first."},
	}
}

func (v *subject) fingerprint(t *conformance.T, _ *conformance.Subject) error {
	var prints [2]string
	for i := range prints {
		p, err := v.Open(t, v.Setup(t))
		if err != nil {
			return err
		}
		prints[i] = p.Fingerprint
		p.Close()
	}
	if prints[0] != prints[1] {
		return fmt.Errorf("two processes with the same config say %q and %q", prints[0], prints[1])
	}
	return nil
}

func (v *subject) together(t *conformance.T, l *conformance.Load, _ *running) error {
	ctx := t.Context()
	want, err := l.Rows(ctx, 0, wire.Window)
	if err != nil {
		return fmt.Errorf("in one call: %w", err)
	}
	calls, ctx := errgroup.WithContext(ctx)
	for i := range want {
		calls.Go(func() error { return l.Same(ctx, i, want[i:i+1]) })
	}
	return calls.Wait()
}

// signOfLife is half the time that the engine waits for a sign of life.
const signOfLife = 5 * time.Second

func (v *subject) alive(t *conformance.T, l *conformance.Load, r *running) error {
	ctx, stop := context.WithCancel(t.Context())
	calls, calling := errgroup.WithContext(ctx)
	var answered atomic.Bool
	for range 8 {
		calls.Go(func() error {
			for calling.Err() == nil {
				if _, err := l.Rows(calling, 0, l.Batch()); err != nil && calling.Err() == nil {
					return err
				}
				answered.Store(true)
			}
			return nil
		})
	}
	var err error
	// Ask while the stage works: until it answers a call, or for a minute. On a busy machine a call takes seconds to
	// reach the stage.
	begun := time.Now()
	working := func() bool { return !answered.Load() && calling.Err() == nil && time.Since(begun) < time.Minute }
	for asked := 0; err == nil && (asked < 3 || working()); asked++ {
		within, cancel := context.WithTimeout(ctx, signOfLife)
		if ok := r.Alive(within); !ok && ctx.Err() == nil {
			err = fmt.Errorf("no sign of life within %v while it worked on 8 calls", signOfLife)
		}
		cancel()
	}
	stop()
	if worked := calls.Wait(); err == nil {
		err = worked
	}
	return err
}

// large sends a message just below the limit.
func (v *subject) large(t *conformance.T, l *conformance.Load, r *running) error {
	before := r.PID()
	if err := l.Large(t.Context(), wire.MaxMessage>>20-1, 1<<20); err != nil {
		return fmt.Errorf("a message of %d MiB: %w", wire.MaxMessage>>20-1, err)
	}
	if after := r.PID(); after != before {
		return fmt.Errorf("a message of %d MiB ended the process", wire.MaxMessage>>20-1)
	}
	return nil
}

// deadline makes calls whose deadline passes at their start, and calls whose deadline passes during their work.
func (v *subject) deadline(t *conformance.T, l *conformance.Load, r *running) error {
	if _, err := l.Rows(t.Context(), 0, 1); err != nil { // the first call has done its setup
		return err
	}
	before := r.PID()
	for left, over := time.Millisecond, true; over && left <= 10*time.Second; left *= 10 { // until the time suffices for a call
		ctx, cancel := context.WithTimeout(t.Context(), left)
		_, err := l.Rows(ctx, 0, 2000)
		cancel()
		if over = sdk.CodeOf(err) == sdk.CodeDeadline; err != nil && !over {
			return fmt.Errorf("a call that had %v: %w", left, err)
		}
		if after := r.PID(); after != before {
			return fmt.Errorf("a call that had %v was worked on until the engine ended the process", left)
		}
	}
	alone, cancel := context.WithTimeout(wire.Alone(t.Context()), v.Options.Promptly)
	defer cancel()
	if _, err := l.Rows(alone, 0, 1); err != nil {
		return fmt.Errorf("%v after the last of them: %w", v.Options.Promptly, err)
	}
	return nil
}
