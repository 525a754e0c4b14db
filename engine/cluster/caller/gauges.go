package caller

import (
	"github.com/racflow/racflow/engine/observe"
)

// observe tells who watches the pipeline how far the run is.
func (c *Caller) observe() {
	if c.watched == nil {
		return
	}
	c.observing.Lock()
	defer c.observing.Unlock()
	b, err := c.run.Backlog(c.work)
	if err != nil {
		return // it is told with what comes next
	}
	c.mu.Lock()
	done := c.state.Done
	c.mu.Unlock()
	c.watched.Cluster(c.defined.Manifest.Pipeline, observe.Cluster{Workers: c.crew.states(), Waiting: b.Waiting, UnderWay: b.UnderWay, Done: int(done)})
}

// states counts the workers that are there by what they do.
func (c *crew) states() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := map[string]int{}
	for _, w := range c.workers {
		if !w.at.IsZero() {
			n[w.State]++
		}
	}
	return n
}
