package caller

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/racflow/racflow/engine/cluster/bus"
	"github.com/racflow/racflow/engine/cluster/definition"
	"github.com/racflow/racflow/engine/governor"
)

// maxNamed is how many workers are named on the terminal one by one; the log has all.
const maxNamed = 16

// crew are the workers of a run, as they say what they are.
type crew struct {
	run     string
	servers string
	say     func(format string, args ...any)
	log     *slog.Logger
	idle    time.Duration // after which it is said that nobody takes part

	ahead time.Duration // of this machine's clock before the servers'

	mu      sync.Mutex
	over    bool // the run is: nothing more is said of them
	workers map[string]*seen
	changed chan struct{} // is closed and made anew when one has said something
}

func newCrew(run string, o Options) *crew {
	return &crew{run: run, servers: o.Servers, say: o.Say, log: o.Log, idle: o.Idle, workers: map[string]*seen{}, changed: make(chan struct{})}
}

// synchronise finds out how far the servers' clock is behind this machine's, by a key that was just put.
func (c *crew) synchronise(ctx context.Context, run *bus.Run, key string) error {
	all, err := run.All(ctx, key)
	if at := all[key].At; !at.IsZero() {
		c.ahead = time.Since(at)
	}
	return err
}

// seen is a worker as it said it is.
type seen struct {
	definition.Worker
	at   time.Time // when that was heard; zero: it is gone
	told string    // what was said of it
}

func (w *seen) takesPart() bool {
	return !w.at.IsZero() && (w.State == definition.Working || w.State == definition.Joining)
}

// watch hears of workers until ctx ends, and calls joined each time.
func (c *crew) watch(ctx context.Context, changes <-chan bus.Change, joined func()) {
	tick := time.NewTicker(definition.WorkerGone / 3)
	defer tick.Stop()
	var late <-chan time.Time // nil: it is not waited for anyone
	for said := false; ; {
		switch {
		case c.anyone():
			said, late = false, nil
		case !said && late == nil:
			late = time.After(c.idle)
		}
		select {
		case change, ok := <-changes:
			if !ok {
				return
			}
			c.heard(change, time.Now())
			joined()
		case now := <-tick.C:
			c.miss(now)
		case <-late:
			said, late = true, nil
			c.say("run %s: nobody takes part: start racflow worker --on %s on the machines that are to answer", c.run, c.servers)
		case <-ctx.Done():
			return
		}
	}
}

// anyone reports whether some worker takes part.
func (c *crew) anyone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.workers {
		if w.takesPart() && w.State == definition.Working {
			return true
		}
	}
	return false
}

// heard notes what a worker said.
func (c *crew) heard(change bus.Change, now time.Time) {
	name := strings.TrimPrefix(change.Key, definition.WorkerPrefix)
	c.mu.Lock()
	w := c.workers[name]
	if w == nil {
		if change.Deleted {
			c.mu.Unlock()
			return
		}
		w = &seen{}
		c.workers[name] = w
	}
	if change.Deleted {
		w.at = time.Time{}
	} else if err := json.Unmarshal(change.Value, &w.Worker); err != nil {
		c.log.Warn("what a worker says cannot be read", "worker", name, "error", err)
	} else if w.Name, w.at = name, now; now.Sub(change.At)-c.ahead > definition.WorkerGone {
		w.at = time.Time{} // of an earlier part of the run
	}
	close(c.changed)
	c.changed = make(chan struct{})
	c.mu.Unlock()
	c.tell(w)
}

// miss notes which workers have not been heard of for long.
func (c *crew) miss(now time.Time) {
	c.mu.Lock()
	var gone []*seen
	for _, w := range c.workers {
		if !w.at.IsZero() && now.Sub(w.at) > definition.WorkerGone {
			w.at = time.Time{}
			gone = append(gone, w)
		}
	}
	c.mu.Unlock()
	for _, w := range gone {
		c.tell(w)
	}
}

// tell says what has changed about a worker.
func (c *crew) tell(w *seen) {
	c.mu.Lock()
	text := ""
	switch {
	case w.at.IsZero() && w.told == "":
	case w.at.IsZero():
		text = "has left"
	case w.State == definition.Working:
		text = "takes part"
	case w.State == definition.Lacks:
		text = "takes no part: " + strings.Join(w.Lacks, "; ")
	}
	changed := text != "" && text != w.told && !c.over
	if changed {
		w.told = text
	}
	many, who := len(c.workers) > maxNamed, fmt.Sprintf("worker %s on %s", w.Name, w.Host)
	lacks := w.State == definition.Lacks && c.lacking(text) <= maxNamed
	c.mu.Unlock()
	if !changed {
		return
	}
	if !many || lacks {
		c.say("%s %s", who, text)
		return
	}
	c.log.Info(who+" "+text, "run", c.run)
}

// lacking counts the workers of which the same was said. The caller holds mu.
func (c *crew) lacking(text string) (n int) {
	for _, w := range c.workers {
		if w.told == text {
			n++
		}
	}
	return n
}

// spent sums up what the workers' calls of services came to.
func (c *crew) spent() governor.Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all governor.Snapshot
	for _, w := range c.workers {
		all = all.Plus(w.Calls)
	}
	return all
}

// batches is how many keep the workers busy: two for each that they can have in hand.
func (c *crew) batches() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.workers {
		if w.takesPart() {
			n += 2 * max(w.Jobs, jobs)
		}
	}
	return n
}

// settle waits until the workers have left, whose last words are what they spent.
func (c *crew) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleWait)
	defer cancel()
	for {
		c.mu.Lock()
		c.over = true
		changed := c.changed
		c.mu.Unlock()
		if !c.anyone() {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
