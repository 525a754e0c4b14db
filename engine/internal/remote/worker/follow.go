package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/engine/internal/remote/caller"
	"github.com/racflow/racflow/engine/internal/remote/shipment"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/sdk/support"
)

// follower takes part in one run, with repeated attempts.
type follower struct {
	*worker
	id       string
	room     room
	status   *status
	log      *slog.Logger
	failures int
	lacks    []string // as last reported
}

// follow takes part in a run, for which there is a place, until the run is over or ctx ends.
func (w *worker) follow(ctx context.Context, id string) {
	r := w.look(ctx, id)
	if r == nil {
		if ctx.Err() == nil {
			w.places.leave()
			w.drop(id)
		}
		return
	}
	f := &follower{worker: w, id: id, room: r, status: newStatus(w.name), log: w.log.With("run", id)}
	// The state is stored until the last batch has ended, even if that takes a while.
	telling, stop := context.WithCancel(context.WithoutCancel(ctx))
	var reports sync.WaitGroup
	reports.Go(func() { f.status.keep(telling, r) })
	for f.once(ctx) && w.places.enter(ctx) == nil {
	}
	stop()
	reports.Wait()
	if ctx.Err() == nil {
		w.drop(id)
	}
}

// drop removes the local data of a finished run.
func (w *worker) drop(id string) {
	if err := w.gone(id); err != nil {
		w.log.Warn("what a run has left that is over stays", "run", id, "error", err)
	}
}

// look opens a run as soon as the servers allow it; nil: the run is over, or ctx has ended. While
// it waits, another run uses its place.
func (w *worker) look(ctx context.Context, id string) room {
	for failures := 1; ; failures++ {
		r, err := w.at.Room(ctx, id)
		if err == nil {
			return r
		}
		if ctx.Err() == nil {
			w.log.Warn("a run cannot be looked at", "run", id, "error", err)
		}
		w.places.leave()
		if support.SleepFor(ctx, pauses.Delay(failures)) != nil || w.places.enter(ctx) != nil {
			return nil
		}
	}
}

// once opens the pipeline and works until there is a reason to leave, then gives back its place. It
// returns when the next attempt is due; false: there is none.
func (f *follower) once(ctx context.Context) (again bool) {
	began := time.Now()
	why := f.partake(ctx)
	f.places.leave()
	var needs *shipment.LacksError
	pause := lookAgain
	switch {
	case ctx.Err() != nil:
		return false
	case errors.Is(why, errOver): // wait checks whether it really is
	case errors.Is(why, errIdle):
		f.status.set(caller.Joining)
		return true
	case errors.As(why, &needs):
		f.lack(needs.Lacks)
	default:
		if time.Since(began) > steady {
			f.failures = 0
		}
		f.failures++
		pause = pauses.Delay(f.failures)
		f.log.Warn("the run's pipeline cannot go on here, and is opened again", "error", why, "after", pause.Round(time.Second))
		f.lack([]string{why.Error()})
	}
	return f.wait(ctx, pause)
}

// lack reports what the worker lacks for the run; it prints that only if it is new.
func (f *follower) lack(what []string) {
	f.status.set(caller.Lacks, what...)
	if slices.Equal(f.lacks, what) {
		return
	}
	f.lacks = slices.Clone(what)
	f.say("run %s: this worker takes no part in it:", f.id)
	for _, one := range what {
		f.say("  %s", one)
	}
}

// wait waits for the next attempt; false: the run is over, or ctx has ended.
func (f *follower) wait(ctx context.Context, pause time.Duration) bool {
	within, stop := context.WithTimeout(ctx, pause)
	defer stop()
	return f.room.Over(within) != nil && ctx.Err() == nil
}

func (f *follower) partake(ctx context.Context) error {
	d, err := f.readable()
	if err != nil {
		return err
	}
	// Batches, and with them the pipeline, outlive ctx; the opening does not.
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	opening, opened := context.WithCancel(ctx)
	var watches sync.WaitGroup
	watches.Go(func() {
		switch over := f.room.Over(opening) == nil; {
		case over:
			end(errOver)
		case ctx.Err() != nil:
			end(ctx.Err())
		}
	})
	p, err := f.open(life, f.room, d)
	opened()
	watches.Wait()
	if err != nil {
		if cause := context.Cause(life); cause != nil {
			err = cause
		}
		return err
	}
	defer p.Close()
	f.status.opened(p)
	defer f.status.closed()
	f.lacks = nil
	f.status.set(caller.Working)
	f.say("joined run %s of %s", f.id, d.Caller)
	part := &part{worker: f.worker, id: f.id, room: f.room, pipeline: p, status: f.status, log: f.log}
	why := part.work(ctx)
	f.say("left run %s: %s", f.id, said(ctx, why))
	return why
}

// said returns the reason why a run was left, for people.
func said(ctx context.Context, why error) string {
	if ctx.Err() != nil {
		return "this worker ends"
	}
	return why.Error()
}

// readable returns the run's definition, if the same version of racflow wrote it.
func (f *follower) readable() (*caller.Definition, error) {
	d, err := caller.DecodeDefinition(f.room.Definition())
	switch {
	case err != nil:
		return nil, &shipment.LacksError{Lacks: []string{err.Error()}}
	case d.Version != f.version:
		return nil, &shipment.LacksError{Lacks: []string{fmt.Sprintf("the run was begun with racflow %s, and this worker is racflow %s: install the same version", d.Version, f.version)}}
	}
	return d, nil
}

// line admits a limited number of goroutines at a time, in the order of their arrival. A nil line admits
// everybody at once.
type line struct {
	places  int
	free    *semaphore.Weighted
	waiting atomic.Int32
}

func newLine(places int) *line {
	return &line{places: places, free: semaphore.NewWeighted(int64(places))}
}

// enter waits for a place. It returns the error of ctx if that ends first; then do not call leave.
func (l *line) enter(ctx context.Context) error {
	if l == nil {
		return ctx.Err()
	}
	l.waiting.Add(1)
	defer l.waiting.Add(-1)
	return l.free.Acquire(ctx, 1)
}

// leave makes room for the next one.
func (l *line) leave() {
	if l != nil {
		l.free.Release(1)
	}
}

// pass waits until it could enter.
func (l *line) pass(ctx context.Context) error {
	err := l.enter(ctx)
	if err == nil {
		l.leave()
	}
	return err
}

// others reports whether others wait.
func (l *line) others() bool { return l.waiting.Load() > 0 }

// room is the part of a run at the servers that the loop needs; natsRoom implements it with *bus.Run.
type room interface {
	Definition() []byte
	// Over waits until the run is over and returns nil, or an error if ctx ends first.
	Over(ctx context.Context) error
	Take(ctx context.Context) (batch, error)
	Answer(ctx context.Context, at bus.Position, data []byte) (first bool, err error)
	// Tell stores the worker's state.
	Tell(ctx context.Context, state caller.WorkerState) error
}

// batch is the loop's view of a *bus.Batch.
type batch struct {
	bus.Position
	Data       []byte
	Deliveries int
	Done       func(ctx context.Context) error
	Return     func() error
	Lost       <-chan struct{} // closed when another worker may have it
}

// joined is the open pipeline of a run in which this worker takes part.
type joined interface {
	// Size returns how many batches to work on at the same time.
	Size() int
	Take(ctx context.Context, o run.Order) (run.Answers, error)
	// Trouble returns why the stages cannot continue on this machine, judging by their answers;
	// nil: they can, or no machine could.
	Trouble(a run.Answers) error
	// Calls returns the pipeline's calls of services so far.
	Calls() governor.Snapshot
	Close()
}

// opener opens the pipeline of a run, which ends with ctx. The error is a *shipment.LacksError if this
// worker lacks something.
type opener func(ctx context.Context, r room, d *caller.Definition) (joined, error)
