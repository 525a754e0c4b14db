package calls

import (
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
	// Waiting is called where calls have waited for a service for 5 seconds, and
	// then every 30 seconds. It must not call the Control. nil: nobody wants to know.
	Waiting func(Wait)
}

// Control is what the stages of one run share.
type Control struct {
	ctx     context.Context // ends with the run
	options Options

	mu        sync.Mutex
	spent     error // why no stage is admitted any more: the budget is spent
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
		ctx: ctx, options: o, budget: budget{Budget: o.Budget},
		endpoints: map[string]*endpoint{}, stages: map[string]*stage{},
	}
}

// How many calls of a stage are denied, one after the other, until the others are
// not sent: they would be denied as well.
const (
	deniedAtOnce = 5  // where none was ever served
	deniedInARow = 25 // a key may end, or the money; a single denial may be about the text
)

// stop ends the calls of a stage whose service is not there for it, with an error of
// sdk.CodeStopped. Other stages may have better services.
func (c *Control) stop(h *host, err error) {
	h.stage.stopped = &sdk.Error{Code: sdk.CodeStopped, Err: fmt.Errorf("%s: %w", h.name, err)}
	c.refuse(h.stage.stopped, func(s *stage) bool { return s == h.stage })
}

// refuse ends the waiting of the calls of some stages.
func (c *Control) refuse(err error, of func(*stage) bool) {
	for _, g := range c.gates {
		for at, q := range g.queues {
			for of(q.stage) && q.first() != nil {
				g.refuse(at, err)
			}
		}
	}
}

// finish is told how a call ended.
func (c *Control) finish(w *waiter, o sdk.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.release(w)
	w.endpoint.end(time.Now(), w.began, w.probe, o)
	believed := o.Usage.Plausible()
	if !believed {
		w.endpoint.disbelieve(o.Usage)
		o.Usage = sdk.Usage{}
	}
	took := estimate{cost: w.host.price.Of(o.Usage), tokens: int64(o.Usage.InputTokens + o.Usage.OutputTokens)}
	if took.tokens > 0 {
		w.gate.tokens.correct(w.tokens, float64(took.tokens))
		w.endpoint.reports = true
	} else if !believed || o.Lost || o.Status == sdk.StatusLeft || o.Status == sdk.StatusOK && !w.endpoint.reports {
		// Nobody knows what it took, and it may have to be paid for.
		took = w.estimate
	}
	c.budget.spend(took.cost, took.tokens)
	w.host.stage.count(o, w.host.price)
	if s := w.host.stage; w.host.sole && o.Status == sdk.StatusDenied && s.stopped == nil {
		switch {
		case !s.served && s.denied >= deniedAtOnce:
			c.stop(w.host, fmt.Errorf("none of its calls was served: %s", o.Reason))
		case s.denied >= deniedInARow:
			c.stop(w.host, fmt.Errorf("its last %d calls were denied: %s", s.denied, o.Reason))
		}
	}
	c.pump()
}
