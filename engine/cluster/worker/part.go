package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/racflow/racflow/engine/cluster/bus"
	"github.com/racflow/racflow/engine/cluster/definition"
	"github.com/racflow/racflow/engine/terminal"
)

// Why a worker leaves a run, beside trouble.
var (
	errOver = errors.New("the run is over")
	errIdle = errors.New("there is nothing to do, and other runs wait")
)

// Why a worker drops a batch.
var (
	errLost = errors.New("the batch is another worker's by now")
	errPast = errors.New("a later part of the run is on")
)

// part is a run that this worker takes part in, once its pipeline is open.
type part struct {
	*worker
	id       string // of the run
	room     room
	pipeline joined
	status   *status
	log      *slog.Logger

	stop context.CancelCauseFunc // no more are taken

	mu    sync.Mutex
	under map[bus.Position]*answering
	last  time.Time // when a batch was taken or ended
}

// answering is a batch under way.
type answering struct {
	ended    chan struct{}
	answered bool // the servers have its answer; known once it has ended
}

// work takes batches until ctx ends, the run is over, there is nothing to do for long or the
// pipeline is in trouble, and returns the cause once those that are under way have ended.
func (p *part) work(ctx context.Context) error {
	taking, stop := context.WithCancelCause(ctx)
	life, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	p.stop, p.last, p.under = stop, time.Now(), map[bus.Position]*answering{}
	var watches, batches sync.WaitGroup
	watches.Go(func() {
		if p.room.Over(taking) == nil {
			stop(errOver)
		}
	})
	watches.Go(func() { p.idles(taking) })
	p.takeAll(taking, life, &batches)
	why := context.Cause(taking)
	watches.Wait()
	if ctx.Err() != nil {
		p.drains()
	}
	if errors.Is(why, errOver) {
		cut() // nobody waits for what is under way
	}
	late := time.AfterFunc(p.grace, cut) // what has not ended is given back
	defer late.Stop()
	batches.Wait()
	if errors.Is(why, errOver) {
		p.status.set(definition.Draining) // the caller waits for the last word on what was spent
	}
	return why
}

// drains says that no more batches are taken.
func (p *part) drains() {
	p.status.set(definition.Draining)
	p.mu.Lock()
	under := len(p.under)
	p.mu.Unlock()
	if under > 0 {
		p.say("run %s: no more batches are taken; %s under way, for at most %s", p.id, terminal.Plural(under, "batch"), p.grace)
	}
}

// takeAll gives batches to goroutines until ctx ends. What is under way lives as long as life.
func (p *part) takeAll(ctx, life context.Context, batches *sync.WaitGroup) {
	most := max(p.pipeline.Size(), 1)
	if p.jobs != nil {
		most = p.jobs.places
	}
	own := newLine(most)
	for {
		// Who waits for a batch keeps no other run from working, and asks for none before there is
		// room for it: others could work on it.
		if own.enter(ctx) != nil || p.jobs.pass(ctx) != nil {
			return
		}
		b, err := p.room.Take(ctx)
		if err != nil {
			p.leave(fmt.Errorf("batches of the run cannot be taken: %w", err)) // does nothing where ctx has ended
			return
		}
		if p.jobs.enter(ctx) != nil {
			p.giveBack(b)
			return
		}
		batches.Go(func() {
			defer own.leave()
			defer p.jobs.leave()
			p.once(life, b)
		})
	}
}

// leave takes no more batches, for a reason; the first one counts.
func (p *part) leave(why error) {
	if errors.Is(why, bus.ErrNoRun) {
		why = errOver
	}
	p.stop(why)
}

// once answers a batch. One that comes again while it is under way here waits for that: this process
// was stopped, or away from the servers, for longer than its claim lasts.
func (p *part) once(life context.Context, b batch) {
	p.mu.Lock()
	first, again := p.under[b.Position]
	if !again {
		first = &answering{ended: make(chan struct{})}
		p.under[b.Position] = first
	}
	p.last = time.Now()
	p.mu.Unlock()
	if again {
		select {
		case <-first.ended:
		case <-life.Done():
		}
		p.mu.Lock()
		done := first.answered
		p.mu.Unlock()
		if done {
			p.done(life, b)
		} else {
			p.giveBack(b)
		}
		return
	}
	answered := p.answer(life, b)
	p.mu.Lock()
	defer p.mu.Unlock()
	first.answered, p.last = answered, time.Now()
	delete(p.under, b.Position)
	close(first.ended)
}

// idles ends the taking of batches where there has been none for a while and other runs wait.
func (p *part) idles(ctx context.Context) {
	tick := time.NewTicker(p.idle)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		p.mu.Lock()
		idle := len(p.under) == 0 && time.Since(p.last) >= p.idle
		p.mu.Unlock()
		if idle && p.places.others() {
			p.leave(errIdle)
			return
		}
	}
}
