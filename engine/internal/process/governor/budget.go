package governor

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/sdk"
)

// budget holds the limits of a run, and what the run has spent and reserved.
type budget struct {
	pipeline.Budget
	cost     float64 // spent
	tokens   int64
	reserved estimate // for calls in flight
	calls    int      // number of paid calls
}

// estimate is the cost of a call before it ends: the maximum if the call states one, else a guess.
type estimate struct {
	cost   float64
	tokens int64
}

// priceOf returns the price that applies to a call of a stage.
func (h *host) priceOf(call sdk.Call) pipeline.Price {
	if call.Batch {
		return h.price.InBatches()
	}
	return h.price
}

func estimateOf(call sdk.Call, p pipeline.Price) estimate {
	if !bounded(call) {
		return estimate{cost: float64(call.Tokens) * max(p.Input, p.Output) / 1e6, tokens: int64(call.Tokens)}
	}
	return estimate{cost: p.AtMost(call.Most), tokens: int64(call.Most.InputTokens + call.Most.OutputTokens)}
}

// bounded reports whether a call states its maximum usage.
func bounded(call sdk.Call) bool { return call.Most != sdk.Usage{} && call.Most.Plausible() }

// limited reports whether the run has a budget.
func (b *budget) limited() bool { return b.Cost > 0 || b.Tokens > 0 }

// fits reports whether the budget has room for a call.
func (b *budget) fits(e estimate) bool {
	costs := b.Cost == 0 || b.cost < b.Cost && b.cost+b.reserved.cost+e.cost <= b.Cost*(1+rounding)
	return costs && (b.Tokens == 0 || b.tokens < b.Tokens && b.tokens+b.reserved.tokens+e.tokens <= b.Tokens)
}

// least raises the estimate of a free call to a tiny amount, so that no call is admitted once the
// budget is used up.
func (b *budget) least(e estimate) estimate {
	if b.Cost > 0 {
		e.cost = max(e.cost, b.Cost*rounding)
	}
	if b.Tokens > 0 {
		e.tokens = max(e.tokens, 1)
	}
	return e
}

func (b *budget) reserve(e estimate) {
	b.reserved.cost += e.cost
	b.reserved.tokens += e.tokens
}

func (b *budget) release(e estimate) {
	b.reserved.cost -= e.cost
	b.reserved.tokens -= e.tokens
}

// spend adds the usage of a call.
func (b *budget) spend(cost float64, tokens int64) {
	if tokens > 0 {
		b.calls++
	}
	b.cost += cost
	b.tokens += tokens
}

// spent returns the error of a run whose budget has no room for a call.
func (b *budget) spent(e estimate) error {
	text := Spent(Amount{b.Cost, b.Budget.Tokens}, Amount{b.cost, b.tokens}, b.calls, Amount{e.cost, e.tokens})
	return &sdk.Error{Code: sdk.CodeStopped, Err: errors.New(text)}
}

// Spent returns the message that a budget has no room for the next call.
func Spent(budget, spent Amount, calls int, next Amount) string {
	of, had, needs := Money(budget.Cost), Money(spent.Cost), Money(next.Cost)
	if budget.Tokens > 0 && (spent.Tokens >= budget.Tokens || spent.Tokens+next.Tokens > budget.Tokens) {
		of, had, needs = fmt.Sprintf("%d tokens", budget.Tokens), fmt.Sprint(spent.Tokens), fmt.Sprint(next.Tokens)
	}
	return fmt.Sprintf("the budget of %s is spent: %s in %d calls, and the next may take %s", of, had, calls, needs)
}

// Money formats an amount; one below 0.001 shows two significant digits.
func Money(amount float64) string {
	switch {
	case amount > 0 && amount < 0.001:
		two, _ := strconv.ParseFloat(strconv.FormatFloat(amount, 'g', 2, 64), 64) // cannot fail: FormatFloat wrote the text
		return strconv.FormatFloat(two, 'f', -1, 64)
	case amount > 0 && amount < 1:
		return fmt.Sprintf("%.4f", amount)
	}
	return fmt.Sprintf("%.2f", amount)
}

// lacks describes the grant that a call waits for; empty: none, or the Governor has its own limits.
func (c *Governor) lacks(l *limiter, w *waiter, now time.Time) string {
	g := l.given
	switch {
	case g == nil:
		return ""
	case c.together.over(now):
		return "no process hands out the limits of the run now"
	case !c.affords(w.estimate, now):
		return "the run's budget has no room until calls under way have ended"
	case l.inFlight >= g.share && l.inFlight == 0:
		return "other machines have the calls at a time that the limit allows"
	case l.inFlight < g.share && !g.allows(now, l.inFlight, w):
		return l.allows() + ", for all machines together"
	}
	return ""
}

// perMinute returns the limit of requests or tokens per minute; 0: no limit.
func (l *limiter) perMinute(tokens bool) int {
	r, g := l.requests, l.given
	switch {
	case tokens && g != nil:
		return int(g.tokens.limit)
	case g != nil:
		return int(g.requests.limit)
	case tokens:
		r = l.tokens
	}
	if r == nil {
		return 0
	}
	return int(r.limit)
}
