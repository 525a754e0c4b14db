package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/racflow/racflow/engine/cluster/packet"
	"github.com/racflow/racflow/engine/run"
	"github.com/racflow/racflow/engine/terminal"
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

// take takes an order through the stages as long as somebody waits for this worker's answer. Else it is
// errLost or errPast: who has the items by now asks what is not answered yet, and both would pay for that.
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

// fail gives a batch back that has no answer here, and takes no more of them. Where taking has
// ended already, it was cut short.
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
