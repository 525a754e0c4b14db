package spend

import (
	"context"
	"slices"
	"sync"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// Clerk does a Spender's work where the stages are asked on another machine: it decides
// nothing, but asks the paid voters about an item or not as it is told, and says what that takes.
// Its methods may be called by several goroutines at once.
type Clerk struct {
	spender *Spender

	mu     sync.Mutex
	asking map[int]bool  // by line of the items under way: the paid voters are asked
	ended  chan struct{} // is closed and made anew when some have ended
}

// NewClerk makes the Clerk of a part of a run. Of the options it needs Forecast.
func NewClerk(o Options) *Clerk {
	return &Clerk{spender: New(o), asking: map[int]bool{}, ended: make(chan struct{})}
}

// Begin says of the items of some lines whether the paid voters are asked about them. Where one is
// under way already, it waits until that has ended: a run that is resumed hands out items again that
// were under way, and what services have answered about them is kept by then.
func (c *Clerk) Begin(ctx context.Context, lines []int, ask bool) error {
	for {
		ended, ok := c.begin(lines, ask)
		if ok {
			return nil
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// begin begins all items or none.
func (c *Clerk) begin(lines []int, ask bool) (ended <-chan struct{}, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.ContainsFunc(lines, func(line int) bool { _, ok := c.asking[line]; return ok }) {
		return c.ended, false
	}
	for _, line := range lines {
		c.asking[line] = ask
	}
	return nil, true
}

// End returns what the items of some lines took, or would take, by position, and forgets them.
func (c *Clerk) End(lines []int) map[int]outcome.Bill {
	bills := map[int]outcome.Bill{}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spender.mu.Lock()
	defer c.spender.mu.Unlock()
	for i, line := range lines {
		delete(c.asking, line)
		if b := c.spender.take(line); b != nil {
			bills[i] = *b
		}
	}
	close(c.ended)
	c.ended = make(chan struct{})
	return bills
}

// Ask decides about a voter and the item of a line; see stage.Options.
func (c *Clerk) Ask(voter *pipeline.Stage, line int, item sdk.Item) bool {
	c.mu.Lock()
	ask := c.asking[line]
	c.mu.Unlock()
	c.spender.note(line, c.spender.forecast(voter, item, !ask))
	return ask
}
