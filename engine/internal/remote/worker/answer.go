package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/engine/internal/remote/caller"
	"github.com/racflow/racflow/engine/internal/remote/packet"
	"github.com/racflow/racflow/engine/internal/remote/shipment"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/show/terminal"
)

const (
	// elsewhere is how often a batch is given back because stages cannot go on here. If it still
	// comes, they cannot anywhere, and the run has to know.
	elsewhere = 2
	// most is how often a batch is given out to be answered.
	most = 10
)

// answer takes a batch through the stages, and gives it back where it has no answer that the servers
// keep.
func (p *part) answer(life context.Context, b batch) (answered bool) {
	order, err := packet.DecodeOrder(b.Data)
	if err != nil {
		err = fmt.Errorf("batch %s cannot be read: %w", b.Position, err)
		if b.Deliveries <= most || !p.unreadable(life, b, err) {
			p.fail(b, err)
			return false
		}
		return true
	}
	rows := order.Rows
	if b.Deliveries > most {
		p.log.Warn("a batch was given out too often: its items fail", "batch", b.Position, "times", b.Deliveries-1)
		order = refused(order, fmt.Errorf("it was given to workers %s with others, and none of them has answered: they may have ended over one of these items (their logs say more)", terminal.Plural(b.Deliveries-1, "time")))
	}
	answers, err := p.take(life, b, order)
	if errors.Is(err, errLost) {
		p.log.Warn("a batch is another worker's by now: the servers have not heard from this one for as long as its claim lasts", "batch", b.Position)
		return false
	}
	if errors.Is(err, errPast) {
		p.done(life, b)
		return true
	}
	if err != nil {
		p.fail(b, fmt.Errorf("the stages cannot answer: %w", err))
		return false
	}
	trouble := p.pipeline.Trouble(answers)
	if trouble != nil && b.Deliveries <= elsewhere {
		p.fail(b, trouble)
		return false
	}
	data, err := packet.EncodeAnswers(rows, answers)
	if err != nil { // as it would at any worker
		p.log.Warn("the answers of a batch cannot travel: its items fail", "batch", b.Position, "error", err)
		if answers, err = p.pipeline.Take(life, refused(order, fmt.Errorf("the answers of its batch cannot travel: %w", err))); err == nil {
			data, err = packet.EncodeAnswers(rows, answers)
		}
	}
	if err == nil {
		_, err = p.room.Answer(life, b.Position, data) // another's may stand already: it is as good
	}
	if err != nil {
		p.fail(b, fmt.Errorf("the answers of a batch cannot be kept: %w", err))
		return false
	}
	p.done(life, b)
	failed := 0
	for _, r := range answers.Results {
		if r.Failure != nil {
			failed++
		}
	}
	p.status.count(len(rows), failed)
	if trouble != nil {
		p.leave(trouble)
	}
	return true
}

// take takes an order through the stages as long as somebody waits for this worker's answer. After that
// the error is errLost or errPast: who has the items by now asks what is not answered yet, and both
// would pay for that.
func (p *part) take(life context.Context, b batch, o run.Order) (run.Answers, error) {
	held, drop := context.WithCancelCause(life)
	defer drop(nil)
	go func() {
		select {
		case <-b.Lost:
			drop(errLost)
		case <-b.Past:
			drop(errPast)
		case <-held.Done():
		}
	}()
	answers, err := p.pipeline.Take(held, o)
	if cause := context.Cause(held); errors.Is(cause, errLost) || errors.Is(cause, errPast) {
		return run.Answers{}, cause
	}
	return answers, err
}

// done acknowledges a batch that is answered.
func (p *part) done(life context.Context, b batch) {
	if err := b.Done(life); err != nil {
		p.log.Debug("a batch that is answered could not be acknowledged, and comes again", "batch", b.Position, "error", err)
	}
}

// fail gives back a batch that has no answer here, and takes no more batches. Where taking has
// ended already, the batch was cut short.
func (p *part) fail(b batch, why error) {
	p.leave(why)
	p.giveBack(b)
}

func (p *part) giveBack(b batch) {
	if err := b.Return(); err != nil {
		p.log.Debug("a batch could not be given back, and goes to another once its claim has ended", "batch", b.Position, "error", err)
	}
}

// unreadable answers a batch that nobody can read: without an answer it would go around for ever. Whoever
// reads the answer fails with the reason.
func (p *part) unreadable(life context.Context, b batch, why error) (answered bool) {
	data, err := packet.EncodeAnswers(nil, run.Answers{Ended: why})
	if err == nil {
		_, err = p.room.Answer(life, b.Position, data)
	}
	if err != nil {
		return false
	}
	p.done(life, b)
	return true
}

// refused is an order whose rows fail: no stage sees them.
func refused(o run.Order, why error) run.Order {
	o.Rows = slices.Clone(o.Rows)
	for i := range o.Rows {
		if o.Rows[i].Err == nil {
			o.Rows[i].Err = why
		}
	}
	return o
}

// lacksError says what a worker needs for a run and does not have, in sentences that say what to do.
type lacksError struct{ what []string }

func (e *lacksError) Error() string { return strings.Join(e.what, "; ") }

// lacking makes a lacksError of an error that says what this machine has not; others may go away by
// themselves.
func lacking(err error) error {
	var bundled *shipment.LacksError
	var different *engine.DifferentError
	var file *engine.DiagnosticsError
	var option *engine.OptionError
	switch {
	case errors.As(err, &bundled):
		return &lacksError{slices.Clone(bundled.Lacks)}
	case errors.As(err, &different):
		return &lacksError{slices.Clone(different.Differences)}
	case errors.As(err, &file):
		return &lacksError{strings.Split(err.Error(), "\n")}
	case errors.As(err, &option):
		return &lacksError{[]string{err.Error()}}
	}
	return err
}

const (
	// rateOver is how long the time is that a rate is of.
	rateOver = 30 * time.Second
	// stateTimeout is how long a state may take to the servers.
	stateTimeout = 5 * time.Second
)

// status is what others see of this worker in a run.
type status struct {
	mu     sync.Mutex
	now    caller.WorkerState
	calls  func() governor.Snapshot // of the pipeline that is open; nil: none is
	before governor.Snapshot        // of those that were open before
	marks  []mark                   // of the last rateOver, oldest first

	changed chan struct{} // something changed that others have to see at once
}

// mark is how many items had been answered at a time.
type mark struct {
	at    time.Time
	items int64
}

func newStatus(name string) *status {
	host, _ := os.Hostname()
	return &status{
		now:     caller.WorkerState{Name: name, Host: host, PID: os.Getpid(), Since: time.Now().UTC(), State: caller.Joining},
		changed: make(chan struct{}, 1),
	}
}

// set says what the worker does, and what it lacks for that.
func (s *status) set(state string, lacks ...string) {
	s.mu.Lock()
	s.now.State, s.now.Lacks = state, lacks
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// opened takes calls of services from a pipeline, until closed.
func (s *status) opened(p joined) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = p.Calls
}

// closed keeps what the pipeline called.
func (s *status) closed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before, s.calls = s.sum(), nil
}

// sum are all calls so far. The caller holds mu.
func (s *status) sum() governor.Snapshot {
	if s.calls == nil {
		return s.before
	}
	return s.before.Plus(s.calls())
}

// count adds a batch that was answered.
func (s *status) count(items, failed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.Batches++
	s.now.Items += int64(items)
	s.now.Failed += int64(failed)
}

// state is what others see now.
func (s *status) state(now time.Time) caller.WorkerState {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.now
	w.Calls = s.sum()
	w.Cost, w.Tokens = w.Calls.Total.Cost, w.Calls.Total.InputTokens+w.Calls.Total.OutputTokens
	s.marks = append(s.marks, mark{now, w.Items})
	for len(s.marks) > 2 && now.Sub(s.marks[1].at) >= rateOver {
		s.marks = s.marks[1:]
	}
	if first := s.marks[0]; now.After(first.at) {
		w.Rate = float64(w.Items-first.items) / now.Sub(first.at).Seconds()
	}
	return w
}

// keep writes the state until ctx ends, once more then, and has it forgotten.
func (s *status) keep(ctx context.Context, r room) {
	for ctx.Err() == nil {
		s.put(ctx, r)
		next := time.NewTimer(caller.WorkerEvery)
		select {
		case <-s.changed:
		case <-next.C:
		case <-ctx.Done():
		}
		next.Stop()
	}
	s.put(ctx, r)
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), stateTimeout)
	defer cancel()
	_ = r.Forget(within) // else it ages, and others see that
}

// put writes the state, also once ctx has ended. Where that fails, the next one says the same and more.
func (s *status) put(ctx context.Context, r room) {
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), stateTimeout)
	defer cancel()
	_ = r.Tell(within, s.state(time.Now()))
}
