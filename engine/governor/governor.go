package governor

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/racflow/racflow/engine/observe"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/profile"
	"github.com/racflow/racflow/engine/waiting"
	"github.com/racflow/racflow/sdk"
)

// Mode says where answers come from.
type Mode uint8

// The modes of a run.
const (
	Normal  Mode = iota // cached responses are used, new ones are cached
	Offline             // only cached responses: no call is admitted
	Refresh             // responses that earlier runs cached are asked for again and replaced
)

// Options are what New needs.
type Options struct {
	Cache Responses // what services answered, by the keys of KeyOf; nil: nothing is kept
	// Profiles are those of the models that stages ask; nil: nothing is kept.
	Profiles *profile.Store
	Mode     Mode
	Budget   pipeline.Budget
	Log      *slog.Logger // gets services that are down, and back
	// Waiting hears of calls that were answered; may be nil. The Governor's Waits are for it.
	Waiting *waiting.Reporter
}

// Governor is what the stages of one run share.
type Governor struct {
	ctx     context.Context // ends with the run
	options Options

	mu       sync.Mutex
	spent    error // why all stages have stopped: the budget is spent
	budget   budget
	inFlight int // calls of all limiters
	flying   map[*waiter]bool
	limiters []*limiter
	breakers map[string]*breaker
	stages   map[string]*stage
	wake     *time.Timer
	together *joint // nil: the limits are the Governor's own
}

// New makes the Governor of a run. Once ctx ends it admits no call, not even one that
// waits for another to be cancelled.
func New(ctx context.Context, o Options) *Governor {
	return &Governor{
		ctx: ctx, options: o, budget: budget{Budget: o.Budget},
		flying: map[*waiter]bool{}, breakers: map[string]*breaker{}, stages: map[string]*stage{},
	}
}

// How many calls of a stage are denied in a row until it is stopped: further calls would
// be denied as well.
const (
	deniedAtOnce = 5  // before any was served
	deniedInARow = 25 // a key may expire; a single denial may be about the text
)

// stop ends the calls of a stage whose service is down or denies it, with an error of
// sdk.CodeStopped. Other stages continue.
func (c *Governor) stop(h *host, err error) {
	h.stage.stopped = &sdk.Error{Code: sdk.CodeStopped, Err: fmt.Errorf("%s: %w", h.name, err)}
	c.refuse(h.stage.stopped, func(s *stage) bool { return s == h.stage })
}

// Again lets stages call once more that were stopped because their service stayed down or denied
// their calls. It reports whether there were any; a budget that is spent stays so.
func (c *Governor) Again() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	any := false
	for _, s := range c.stages {
		if s.stopped != nil {
			s.stopped, s.denied, any = nil, 0, true
		}
	}
	if now := time.Now(); any {
		for _, b := range c.breakers { // calls wait for it as if it had just gone down
			b.since, b.busy = now, time.Time{}
		}
	}
	return any
}

// Refuses reports whether every further call of a stage is refused.
func (c *Governor) Refuses(stage string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stages[stage]
	return c.spent != nil || s != nil && s.stopped != nil
}

// refuse fails the waiting calls of some stages.
func (c *Governor) refuse(err error, of func(*stage) bool) {
	for _, g := range c.limiters {
		for at, q := range g.queues {
			for of(q.stage) && q.first() != nil {
				g.refuse(at, err)
			}
		}
	}
}

// noteTrouble notes which service last kept a call of the stage from an answer.
func (c *Governor) noteTrouble(w *waiter, status sdk.Status) {
	switch status {
	case sdk.StatusBusy, sdk.StatusDown:
		w.host.stage.trouble = w.breaker
	case sdk.StatusOK:
		w.host.stage.trouble = nil
		c.options.Waiting.Answered(w.host.name)
	}
}

// finish records how a call ended, and returns what is known of it for certain.
func (c *Governor) finish(w *waiter, o sdk.Result) observe.Reply {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.release(w)
	c.end(w, o)
	c.noteTrouble(w, o.Status)
	plausible := w.call.Believes(o.Usage)
	if !plausible {
		w.breaker.reportImplausible(o)
		o.Usage = sdk.Usage{}
	}
	price := w.host.priceOf(w.call)
	took := estimate{cost: price.Of(o.Usage), tokens: int64(o.Usage.InputTokens + o.Usage.OutputTokens)}
	if took.tokens > 0 {
		w.limiter.tokens.correct(w.tokens, float64(took.tokens))
		c.correct(w, 0, float64(took.tokens-int64(w.call.Tokens)))
		w.breaker.reports = true
	} else if !plausible || o.Lost || o.Status == sdk.StatusLeft || o.Status == sdk.StatusOK && !w.breaker.reports {
		// Its cost is unknown, and it may have to be paid for.
		took = w.estimate
	}
	c.budget.spend(took.cost, took.tokens)
	w.host.stage.count(o, price, w.call.Alternative)
	if s := w.host.stage; w.host.needed() && !w.call.Alternative && o.Status == sdk.StatusDenied && s.stopped == nil {
		switch {
		case !s.served && s.denied >= deniedAtOnce:
			c.stop(w.host, fmt.Errorf("none of its calls was served: %s", o.Reason))
		case s.denied >= deniedInARow:
			c.stop(w.host, fmt.Errorf("its last %d calls were denied: %s", s.denied, o.Reason))
		}
	}
	c.dispatch()
	return observe.Reply{Status: o.Status, Usage: o.Usage, Cost: price.Of(o.Usage)}
}
