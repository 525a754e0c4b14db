package governor

import (
	"context"
	"errors"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/show/terminal"
	"github.com/racflow/racflow/sdk"
)

// This file lets one Governor admit the calls of other processes: theirs ask an Admitter, which passes each call to
// that Governor's Admit.

// Admitter decides on the calls of a Governor, in place of its own limits, breakers and budget.
type Admitter interface {
	// Admit waits until a call of the stage may be sent. end reports its result, and does not wait.
	Admit(ctx context.Context, s Stage, call sdk.Call) (end func(sdk.Result), err error)
	// Waits reports what the waiting calls wait for.
	Waits(now time.Time, say func(terminal.Wait))
}

// AdmitBy makes an Admitter decide on all calls. Call it before the first call.
func (c *Governor) AdmitBy(a Admitter) { c.admitter = a }

// askAdmitter waits until the Admitter admits a call.
func (c *Governor) askAdmitter(ctx context.Context, h *host, call sdk.Call) (*waiter, error) {
	c.mu.Lock()
	w := &waiter{host: h, breaker: c.breakerOf(call.Endpoint), call: call}
	c.mu.Unlock()
	if err := c.ask(ctx, c.admitter, w, h.limit); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h.stage.stopped = nil
	c.begin(w, time.Now())
	return w, nil
}

// askShared waits until a call that this Governor has admitted is also admitted by those who share its limit.
func (c *Governor) askShared(ctx context.Context, w *waiter) error {
	limit := *w.host.limit
	limit.Name = limit.Shared // in each file the block may have another name
	err := c.ask(ctx, w.limiter.shared, w, &limit)
	if err != nil {
		c.takeBack(w)
	}
	return err
}

// ask waits until an Admitter admits a call.
func (c *Governor) ask(ctx context.Context, of Admitter, w *waiter, limit *pipeline.Limit) (err error) {
	h := w.host
	c.mu.Lock()
	s := Stage{Name: h.name, Kind: h.kind, Use: h.use, Limit: limit, Price: &h.price, Required: h.needed(), Covered: h.stage.covered}
	c.mu.Unlock()
	w.end, err = of.Admit(ctx, s, w.call)
	c.mu.Lock()
	defer c.mu.Unlock()
	if sdk.CodeOf(err) == sdk.CodeStopped && c.spent == nil {
		h.stage.stopped = err
		c.refuse(err, func(s *stage) bool { return s == h.stage })
	}
	return err
}

// Exhausted notes why the Admitter refuses every further call, because the budget is used up. An empty reason changes
// nothing: it may be older than one that came before.
func (c *Governor) Exhausted(why string) {
	if why == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spent = &sdk.Error{Code: sdk.CodeStopped, Err: errors.New(why)}
}

// Admitted is a call of another process that may be sent.
type Admitted struct {
	c *Governor
	w *waiter
}

// Admit waits until a call of another process may be sent. Each process has stages of its own, which take turns.
func (c *Governor) Admit(ctx context.Context, s Stage, call sdk.Call) (*Admitted, error) {
	h := c.Stage(s).(*host)
	h.foreign = true
	w, err := c.await(ctx, h, call)
	if err != nil {
		return nil, err
	}
	return &Admitted{c, w}, nil
}

// Adopt counts a call that is under way, because an earlier Governor admitted it.
func (c *Governor) Adopt(s Stage, call sdk.Call) *Admitted {
	h := c.Stage(s).(*host)
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.newWaiter(h, call)
	c.begin(w, time.Now())
	return &Admitted{c, w}
}

// Sent says that the call is known to have been sent. Until then it counts towards a limit per minute without an end.
func (a *Admitted) Sent() {
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	a.w.sent(time.Now())
	a.c.dispatch() // calls may wait for a time that was unknown until now
}

// End says how the call ended.
func (a *Admitted) End(o sdk.Result) {
	a.Sent()
	a.c.finish(a.w, o)
}

// Withdraw takes back a call that will not be sent.
func (a *Admitted) Withdraw() { a.c.takeBack(a.w) }

// Recent is what has been used of a limit block lately.
type Recent struct {
	At               time.Time `json:"-"` // until when
	Requests, Tokens float64
}

// Recent returns, by limit block, what was used within the last minute or may still be used by admitted calls.
func (c *Governor) Recent() map[string]Recent {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, now := map[string]Recent{}, time.Now()
	for _, l := range c.limiters {
		if l.block != "" {
			all[l.block] = Recent{At: now, Requests: l.requests.recent(now), Tokens: l.tokens.recent(now)}
		}
	}
	return all
}

// Spend adds what other processes have spent of the budget.
func (c *Governor) Spend(s Spending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.budget.spending = c.budget.spending.Plus(s)
}

// Spending returns what counts as spent, what is reserved for calls under way, and why no further call is admitted. The
// reason is empty while calls are admitted.
func (c *Governor) Spending() (spent Spending, reserved Amount, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.spent != nil {
		why = c.spent.Error()
	}
	return c.budget.spending, c.budget.reserved, why
}
