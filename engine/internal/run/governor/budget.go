package governor

import (
	"fmt"
	"strconv"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/sdk"
)

// budget holds the limits of a run, and what the run has spent and reserved.
type budget struct {
	pipeline.Budget
	spending spending
	reserved amount // for calls in flight
}

// priceOf returns the price that applies to a call of a stage.
func (h *host) priceOf(call sdk.Call) pipeline.Price {
	if call.Batch {
		return h.price.InBatches()
	}
	return h.price
}

// estimateOf returns the cost of a call before it ends: the maximum if the call states one, otherwise an
// estimate.
func estimateOf(call sdk.Call, p pipeline.Price) amount {
	if !bounded(call) {
		return amount{Cost: float64(call.Tokens) * max(p.Input, p.Output) / 1e6, Tokens: int64(call.Tokens)}
	}
	return amount{Cost: p.AtMost(call.Most), Tokens: int64(call.Most.InputTokens + call.Most.OutputTokens)}
}

// bounded reports whether a call states its maximum usage.
func bounded(call sdk.Call) bool { return call.Most != sdk.Usage{} && call.Most.Plausible() }

// limited reports whether the run has a budget.
func (b *budget) limited() bool { return b.Cost > 0 || b.Tokens > 0 }

// fits reports whether the budget has room for a call.
func (b *budget) fits(e amount) bool {
	s, r := b.spending, b.reserved
	costs := b.Cost == 0 || s.Cost < b.Cost && s.Cost+r.Cost+e.Cost <= b.Cost*(1+rounding)
	return costs && (b.Tokens == 0 || s.Tokens < b.Tokens && s.Tokens+r.Tokens+e.Tokens <= b.Tokens)
}

func (b *budget) reserve(e amount) { b.reserved = b.reserved.plus(e) }

func (b *budget) release(e amount) { b.reserved = b.reserved.minus(e) }

// spent returns the error for a call that does not fit into the budget.
func (b *budget) spent(e amount) error {
	s := b.spending
	of, had, needs := Money(b.Cost), Money(s.Cost), Money(e.Cost)
	if b.Tokens > 0 && (s.Tokens >= b.Tokens || s.Tokens+e.Tokens > b.Tokens) {
		of, had, needs = fmt.Sprintf("%d tokens", b.Tokens), fmt.Sprint(s.Tokens), fmt.Sprint(e.Tokens)
	}
	return &sdk.Error{Code: sdk.CodeStopped, Err: fmt.Errorf("the budget of %s is spent: %s in %d calls, and the next may take %s", of, had, s.calls, needs)}
}

// Money formats an amount. An amount below 0.001 shows two significant digits.
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

// perMinute returns the limit of a rate; 0: no limit.
func (r *rate) perMinute() int {
	if r == nil {
		return 0
	}
	return int(r.limit)
}
