package spend

import (
	"fmt"
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
	asking map[int]bool // by line of the items under way: the paid voters are asked
}

// NewClerk makes the Clerk of a part of a run. Of the options it needs Forecast.
func NewClerk(o Options) *Clerk {
	return &Clerk{spender: New(o), asking: map[int]bool{}}
}

// Begin says of the items of some lines whether the paid voters are asked about them. A
// line that is under way already is an error.
func (c *Clerk) Begin(lines []int, ask bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, line := range lines {
		if _, ok := c.asking[line]; ok {
			return fmt.Errorf("the item of line %d is being answered here already", line)
		}
	}
	for _, line := range lines {
		c.asking[line] = ask
	}
	return nil
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
