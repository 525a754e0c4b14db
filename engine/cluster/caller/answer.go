package caller

import (
	"context"
	"fmt"

	"github.com/racflow/racflow/engine/cluster/bus"
	"github.com/racflow/racflow/engine/cluster/packet"
	"github.com/racflow/racflow/engine/run"
)

// Answer implements engine.Remote: it publishes the order at the next position, and waits for the
// result of that.
func (c *Caller) Answer(ctx context.Context, o run.Order) (run.Answers, error) {
	if c.run == nil {
		return run.Answers{}, errNotBegun
	}
	leave, err := c.enter(ctx)
	if err != nil {
		return run.Answers{}, err
	}
	defer leave()
	data, err := packet.EncodeOrder(o)
	if err != nil {
		return run.Answers{}, err
	}
	at, result := c.next()
	defer c.forget(at)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.work, cancel)()
	if err := c.run.Publish(ctx, at, data); err != nil {
		return run.Answers{}, c.because(err)
	}
	select {
	case r := <-result:
		return c.open(o, r)
	case <-ctx.Done():
		return run.Answers{}, c.because(ctx.Err())
	}
}

// because is why an order has no answer: the end of the work, where that is why.
func (c *Caller) because(err error) error {
	if ended := c.ended(); ended != nil {
		return ended
	}
	return err
}

// next takes a position.
func (c *Caller) next() (bus.Position, chan bus.Result) {
	result := make(chan bus.Result, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.Published++
	at := bus.Position{Part: c.state.Part, Seq: int(c.state.Published)}
	c.waiting[at] = result
	return at, result
}

// forget says that nobody waits for a position any more.
func (c *Caller) forget(at bus.Position) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, at)
}

// open reads the result of an order.
func (c *Caller) open(o run.Order, r bus.Result) (run.Answers, error) {
	rows, answers, err := packet.DecodeAnswers(r.Data)
	if err == nil && len(rows) != len(o.Rows) {
		err = fmt.Errorf("it is about %d rows, and %d were sent", len(rows), len(o.Rows))
	}
	for i := 0; err == nil && i < len(rows); i++ {
		if rows[i].Line != o.Rows[i].Line {
			err = fmt.Errorf("it is about line %d of the input, where line %d was sent", rows[i].Line, o.Rows[i].Line)
		}
	}
	if err != nil {
		return run.Answers{}, fmt.Errorf("run %s: the result of batch %d.%d, by %s: %w", c.Run(), r.Part, r.Seq, r.Worker, err)
	}
	return answers, nil
}

// receive hands out results to who waits for them, from one position of the storage on, until the
// work ends.
func (c *Caller) receive(after uint64) {
	for r, err := range c.run.Results(c.work, after) {
		if err != nil {
			c.stop(fmt.Errorf("results of run %s: %w", c.Run(), err))
			return
		}
		c.mu.Lock()
		to := c.waiting[r.Position]
		delete(c.waiting, r.Position)
		if to != nil {
			c.state.Done++
		}
		c.mu.Unlock()
		if to != nil {
			to <- r
		}
	}
}
