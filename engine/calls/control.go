package calls

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/racflow/racflow/engine/cache"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// Mode says where answers come from.
type Mode uint8

// The modes of a run.
const (
	Normal  Mode = iota // what is kept is used, and kept what is not
	Offline             // only what is kept: no call is let through
	Refresh             // what earlier runs kept is asked for again, and kept in its place
)

// Options are what New needs.
type Options struct {
	Cache  *cache.Cache // nil: nothing is kept, and nothing recalled
	Mode   Mode
	Budget pipeline.Budget
	Log    *slog.Logger // is told of services that are down, and back
}

// Control is what the stages of one run share.
type Control struct {
	ctx     context.Context // ends with the run
	options Options
	stopped chan struct{}

	mu        sync.Mutex
	err       error // why the run has to end
	budget    budget
	underWay  int // calls of all gates
	gates     []*gate
	endpoints map[string]*endpoint
	stages    map[string]*stage
	wake      *time.Timer
}

// New makes the Control of a run, which ends with ctx at the latest: from then on no
// call is admitted, also not in the place of one that is given up.
func New(ctx context.Context, o Options) *Control {
	return &Control{
		ctx: ctx, options: o, stopped: make(chan struct{}), budget: budget{Budget: o.Budget},
		endpoints: map[string]*endpoint{}, stages: map[string]*stage{},
	}
}

// Stopped is closed when the run has to end.
func (c *Control) Stopped() <-chan struct{} { return c.stopped }

// Err is why the run has to end, an error of sdk.CodeStopped: the budget is
// spent, or a service is not there for a stage that nothing stands in for; nil
// while it need not.
func (c *Control) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// waiter is a call that waits to be admitted or is under way.
type waiter struct {
	host     *host
	gate     *gate
	endpoint *endpoint
	call     sdk.Call
	estimate estimate
	verdict  chan error // gets one value when the call is admitted or refused
	queued   bool

	began           time.Time
	request, tokens *use
	probe           bool
}

// enter puts a call into its queue. The caller holds mu.
func (c *Control) enter(h *host, call sdk.Call) *waiter {
	e := c.endpoints[call.Endpoint]
	if e == nil {
		e = &endpoint{name: call.Endpoint, log: c.options.Log}
		c.endpoints[call.Endpoint] = e
	}
	w := &waiter{
		host: h, gate: c.gateOf(h, call.Endpoint), endpoint: e, call: call,
		estimate: estimateOf(call.Tokens, h.price), verdict: make(chan error, 1), queued: true,
	}
	w.gate.queue(h.stage).add(w)
	c.pump()
	return w
}

// leave takes a call back that its caller no longer wants.
func (c *Control) leave(w *waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case w.queued:
		w.gate.queue(w.host.stage).remove(w)
		c.pump() // it may have held up others
	case <-w.verdict == nil:
		w.gate.requests.correct(w.request, 0) // it was not sent
		w.gate.tokens.correct(w.tokens, 0)
		c.release(w)
		w.endpoint.end(time.Now(), w.began, w.probe, sdk.Outcome{Status: sdk.StatusLeft})
		c.pump()
	}
}

// pump admits all calls that may be sent now, and sees to it that it is called
// again when the next one may. The caller holds mu.
func (c *Control) pump() {
	now := time.Now()
	var next time.Duration
	for _, g := range c.gates {
		for {
			wait, again := c.step(g, now)
			if wait > 0 && (next == 0 || wait < next) {
				next = wait
			}
			if !again {
				break
			}
		}
	}
	if c.wake != nil {
		c.wake.Stop()
		c.wake = nil
	}
	if next > 0 {
		c.wake = time.AfterFunc(next, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.pump()
		})
	}
}

// step admits or refuses one call of a gate. Where it can do neither, it
// returns false, and the time after which it may be able to; 0: when a call has
// ended.
func (c *Control) step(g *gate, now time.Time) (wait time.Duration, again bool) {
	for i := range g.queues {
		at := (g.turn + i) % len(g.queues)
		w := g.queues[at].first()
		if w == nil {
			continue
		}
		if err := cmp.Or(c.err, c.ctx.Err()); err != nil {
			g.refuse(at, err)
			return 0, true
		}
		pause, err := w.endpoint.ready(now)
		waits := pause > 0
		if err != nil && w.host.sole {
			waits = true
			if pause, err = w.endpoint.patience(now); err != nil {
				c.stop(stopped(w.host, err))
				return 0, true
			}
		}
		if err != nil {
			g.refuse(at, err)
			return 0, true
		}
		if waits { // another stage's endpoint may be ready
			if pause > 0 && (wait == 0 || pause < wait) {
				wait = pause
			}
			continue
		}
		switch {
		case !c.budget.fits(w.estimate) && c.underWay > 0:
			return 0, false
		case !c.budget.fits(w.estimate):
			c.stop(c.budget.spent(w.estimate))
			return 0, true
		}
		if pause, ok := g.room(now, w); !ok {
			return pause, false
		}
		c.admit(g, at, now)
		return 0, true
	}
	return wait, false
}

// How many calls of a stage are denied, one after the other, until the others are
// not sent: they would be denied as well.
const (
	deniedAtOnce = 5  // where none was ever served
	deniedInARow = 25 // a key may end, or the money; a single denial may be about the text
)

func stopped(h *host, err error) error {
	return &sdk.Error{Code: sdk.CodeStopped, Err: fmt.Errorf("%s: %w", h.name, err)}
}

// stop ends the run. Calls that are waiting are refused with the same error.
func (c *Control) stop(err error) {
	c.err = err
	close(c.stopped)
	for _, g := range c.gates {
		for at, q := range g.queues {
			for q.first() != nil {
				g.refuse(at, err)
			}
		}
	}
}

func (c *Control) admit(g *gate, at int, now time.Time) {
	w := g.pop(at)
	w.began = now
	w.request = g.requests.take(now, 1)
	w.tokens = g.tokens.take(now, float64(w.call.Tokens))
	w.probe = w.endpoint.begin()
	c.budget.reserve(w.estimate)
	c.underWay++
	g.underWay++
	w.host.stage.UnderWay++
	w.verdict <- nil
}

// release takes a call out of those that are under way.
func (c *Control) release(w *waiter) {
	c.underWay--
	w.gate.underWay--
	w.host.stage.UnderWay--
	c.budget.release(w.estimate)
	if c.underWay == 0 {
		c.budget.reserved = estimate{} // what adding and subtracting has left
	}
}

// finish is told how a call ended.
func (c *Control) finish(w *waiter, o sdk.Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.release(w)
	w.endpoint.end(time.Now(), w.began, w.probe, o)
	took := estimate{cost: w.host.price.Of(o.Usage), tokens: int64(o.Usage.InputTokens + o.Usage.OutputTokens)}
	if took.tokens > 0 {
		w.gate.tokens.correct(w.tokens, float64(took.tokens))
		w.endpoint.reports = true
	} else if o.Status == sdk.StatusLeft || o.Status == sdk.StatusOK && !w.endpoint.reports {
		// Nobody knows what it took, and it may have to be paid for.
		took = w.estimate
	}
	c.budget.spend(took.cost, took.tokens)
	w.host.stage.count(o, w.host.price)
	if s := w.host.stage; w.host.sole && o.Status == sdk.StatusDenied && c.err == nil {
		switch {
		case !s.served && s.denied >= deniedAtOnce:
			c.stop(stopped(w.host, fmt.Errorf("none of its calls was served: %s", o.Reason)))
		case s.denied >= deniedInARow:
			c.stop(stopped(w.host, fmt.Errorf("its last %d calls were denied: %s", s.denied, o.Reason)))
		}
	}
	c.pump()
}
