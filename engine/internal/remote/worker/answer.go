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
	// elsewhere is how often a batch is returned because the stages cannot continue here. If it
	// still comes back, they cannot continue anywhere, and the run has to learn that.
	elsewhere = 2
	// most is how often a batch is handed out to be answered.
	most = 10
)

// answer sends a batch through the stages and stores the answers. After an error the batch is not answered, and
// unless that is errLost, no more batches are taken.
func (p *part) answer(life context.Context, b batch) error {
	order, err := packet.DecodeOrder(b.Data)
	if err != nil { // no worker can read it: the reader of the answer fails with the reason
		return p.store(life, b, order, run.Answers{Ended: fmt.Errorf("batch %s cannot be read: %w", b.Position, err)})
	}
	given := order
	if b.Deliveries > most {
		p.log.Warn("a batch was given out too often: its items fail", "batch", b.Position, "times", b.Deliveries-1)
		given = refused(order, fmt.Errorf("it was given to workers %s with others, and none of them has answered: they may have ended over one of these items (their logs say more)", terminal.Plural(b.Deliveries-1, "time")))
	}
	answers, err := p.take(life, b, given)
	if errors.Is(err, errLost) {
		p.log.Warn("a batch is another worker's by now: the servers have not heard from this one for as long as its claim lasts", "batch", b.Position)
		return err
	}
	if err != nil {
		return p.leave(fmt.Errorf("the stages cannot answer: %w", err))
	}
	trouble := p.pipeline.Trouble(answers)
	if trouble != nil && b.Deliveries <= elsewhere {
		return p.leave(trouble)
	}
	if err := p.store(life, b, order, answers); err != nil {
		return err
	}
	if trouble != nil {
		_ = p.leave(trouble)
	}
	return nil
}

// store stores the answers of a batch at the servers, unless another worker's are there already, which are as good.
func (p *part) store(life context.Context, b batch, o run.Order, answers run.Answers) error {
	data, err := packet.EncodeAnswers(o.Rows, answers)
	if err != nil { // it would happen at any worker
		p.log.Warn("the answers of a batch cannot travel: its items fail", "batch", b.Position, "error", err)
		if answers, err = p.pipeline.Take(life, refused(o, fmt.Errorf("the answers of its batch cannot travel: %w", err))); err == nil {
			data, err = packet.EncodeAnswers(o.Rows, answers)
		}
	}
	if err == nil {
		_, err = p.room.Answer(life, b.Position, data)
	}
	if err != nil {
		return p.leave(fmt.Errorf("the answers of a batch cannot be kept: %w", err))
	}
	failed := 0
	for _, r := range answers.Results {
		if r.Failure != nil {
			failed++
		}
	}
	p.status.count(len(o.Rows), failed)
	return nil
}

// take sends an order through the stages until the batch is another worker's: then it returns errLost, since
// continuing would pay for the unanswered items twice.
func (p *part) take(life context.Context, b batch, o run.Order) (run.Answers, error) {
	held, drop := context.WithCancelCause(life)
	defer drop(nil)
	go func() {
		select {
		case <-b.Lost:
			drop(errLost)
		case <-held.Done():
		}
	}()
	answers, err := p.pipeline.Take(held, o)
	if errors.Is(context.Cause(held), errLost) {
		return run.Answers{}, errLost
	}
	return answers, err
}

// done acknowledges an answered batch.
func (p *part) done(life context.Context, b batch) {
	if err := b.Done(life); err != nil {
		p.log.Debug("a batch that is answered could not be acknowledged, and comes again", "batch", b.Position, "error", err)
	}
}

// giveBack returns a batch without an answer to the queue.
func (p *part) giveBack(b batch) {
	if err := b.Return(); err != nil {
		p.log.Debug("a batch could not be given back, and goes to another once its claim has ended", "batch", b.Position, "error", err)
	}
}

// refused returns an order whose rows fail before any stage sees them.
func refused(o run.Order, why error) run.Order {
	o.Rows = slices.Clone(o.Rows)
	for i := range o.Rows {
		if o.Rows[i].Err == nil {
			o.Rows[i].Err = why
		}
	}
	return o
}

// lacking converts an error to a *shipment.LacksError if this machine lacks something; other errors may be
// temporary.
func lacking(err error) error {
	var different *engine.DifferentError
	var file *engine.DiagnosticsError
	var option *engine.OptionError
	switch {
	case errors.As(err, &different):
		return &shipment.LacksError{Lacks: different.Differences}
	case errors.As(err, &file):
		return &shipment.LacksError{Lacks: strings.Split(err.Error(), "\n")}
	case errors.As(err, &option):
		return &shipment.LacksError{Lacks: []string{err.Error()}}
	}
	return err
}

const (
	// rateOver is the period over which a rate is measured.
	rateOver = 30 * time.Second
	// stateTimeout limits the time for storing a state at the servers.
	stateTimeout = 5 * time.Second
)

// status is this worker's public state in a run.
type status struct {
	mu     sync.Mutex
	now    caller.WorkerState
	calls  func() governor.Snapshot // of the open pipeline; nil: none is open
	before governor.Snapshot        // of pipelines that were open before
	marks  []mark                   // of the last rateOver, oldest first

	changed chan struct{} // has an element when a change must be stored at once
}

// mark is the number of answered items at a time.
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

// set sets the worker's state, and what it lacks.
func (s *status) set(state string, lacks ...string) {
	s.mu.Lock()
	s.now.State, s.now.Lacks = state, lacks
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// opened counts the service calls of a pipeline until closed.
func (s *status) opened(p joined) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = p.Calls
}

// closed keeps the counts of the pipeline that closes.
func (s *status) closed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before, s.calls = s.sum(), nil
}

// sum returns the counts of all calls so far. The caller holds mu.
func (s *status) sum() governor.Snapshot {
	if s.calls == nil {
		return s.before
	}
	return s.before.Plus(s.calls())
}

// count adds an answered batch.
func (s *status) count(items, failed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.Batches++
	s.now.Items += int64(items)
	s.now.Failed += int64(failed)
}

// state returns the present public state.
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

// keep stores the state until ctx ends, and then that the worker has left.
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
	s.set(caller.Left)
	s.put(ctx, r)
}

// put stores the state, even after ctx has ended. If that fails, the next state includes the same information.
func (s *status) put(ctx context.Context, r room) {
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), stateTimeout)
	defer cancel()
	_ = r.Tell(within, s.state(time.Now()))
}
