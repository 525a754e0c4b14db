package workspace

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"sync"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/measure/plan"
	"github.com/racflow/racflow/engine/internal/process/confine"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/governor"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/spend"
	"github.com/racflow/racflow/engine/internal/run/stage"
	"github.com/racflow/racflow/sdk"
)

// This file decides whether a run calibrates its election. The file can ask for it: then the run calibrates unless the
// calls alone would exceed a limit. Otherwise the calls must take at most a tenth of every limit, and be at most a
// tenth of the calls about the items. If the calls are free, ten items suffice, or as many items as there are calls.

// few is a ratio, for calibration that the file does not ask for. A run, or a limit, must have at least few times the
// items, or the amount, that calibration takes.
const few = 10

// handful is how many items are enough if the calls are free. Fewer items are answered in less than a fifth of the time
// that calibration takes. Later runs use what it learns, too.
const handful = 10

// calibrate lets the election of a new run learn from answers of the voters that call services, if a run should
// calibrate and none did before. Otherwise Events.Advice reports what their votes rest on. input says that the items
// come from the input.
func (p *Pipeline) calibrate(ctx context.Context, r *run.Run, input bool) error {
	c, o := r.Graph().Calibration(), p.workspace.options
	if c == nil || c.Done || o.uncalibrated {
		return nil
	}
	wanted, err := p.calibrates(c, input)
	if err != nil {
		return err
	}
	if wanted {
		before, _ := p.workspace.Spent()
		var ahead *calibration
		if ahead, err = p.newCalibration(ctx, c); err == nil {
			err = r.Graph().Calibrate(ctx, p.launch, ahead.add, ahead.afford)
		}
		now, _ := p.workspace.Spent()
		p.spent = outcome.Bill{Calls: now.Total.Calls - before.Total.Calls, Cost: now.Total.Cost - before.Total.Cost}
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && (c.Explicit || !errors.Is(err, errUnaffordable)): // otherwise nobody has asked for it
		p.advise("%v, since %v", c, err)
	case (err != nil || !wanted) && input && !o.strict:
		p.advise("%v", c)
	}
	return nil
}

// calibrating reports what calibrate would do for a run over the input. g has the run's stages.
func (p *Pipeline) calibrating(ctx context.Context, g *stage.Graph, launch stage.Launch) (*plan.Calibrating, error) {
	c := &plan.Calibrating{Calibration: g.Calibration()}
	switch {
	case c.Calibration == nil:
		return nil, nil //nolint:nilnil // there is nothing to say
	case c.Done:
		return c, nil
	}
	ahead, err := p.newCalibration(ctx, c.Calibration)
	if err == nil {
		err = g.Estimate(ctx, launch, ahead.add)
	}
	if err != nil {
		return nil, ctx.Err() // the run reports the error
	}
	if c.Bill = ahead.bill; ahead.afford() == nil {
		c.Wanted, err = p.calibrates(c.Calibration, true)
	}
	return c, err
}

// calibrates reports whether a run asks the voters about held-out rows, as far as limits allow it. input says that the
// items come from the input.
func (p *Pipeline) calibrates(c *stage.Calibration, input bool) (bool, error) {
	later := slices.ContainsFunc(c.Voters, func(s *pipeline.Stage) bool { return s.Info.Pends })
	switch {
	case p.began != nil: // a resumed run continues as it began
		return false, nil
	case c.Explicit:
		return true, nil
	case later || p.workspace.options.Services.Mode == governor.Offline:
		return false, nil
	case !input || !p.rereadable():
		return false, nil
	case !slices.ContainsFunc(c.Voters, func(s *pipeline.Stage) bool { return !free(s) }):
		return p.reaches(int64(min(c.Rows, handful)))
	}
	return p.reaches(int64(few * c.Rows))
}

// free reports whether the calls of a voter and its fallbacks cost nothing: their price is 0 or, without a price, they
// stay on this machine.
func free(s *pipeline.Stage) bool {
	if slices.ContainsFunc(s.Fallbacks, func(f pipeline.Fallback) bool { return f.Stage.Info.Network && !free(f.Stage) }) {
		return false
	}
	if p := s.Price; p != nil {
		return max(p.Input, p.Cached, p.Output) == 0
	}
	addresses := s.Info.Addresses(s.Config.Open) // none if its plugin names none
	for _, address := range addresses {
		u, err := url.Parse(address)
		if err != nil || len(confine.Loopback([]string{net.JoinHostPort(u.Hostname(), "80")})) == 0 {
			return false
		}
	}
	return len(addresses) > 0
}

// limit returns the limit on the usage of voters that call services.
func (p *Pipeline) limit() spend.Limit {
	if limit := p.workspace.options.Spend; limit.IsSet() {
		return limit
	}
	return p.spendable
}

var errUnaffordable = errors.New("a limit does not allow it")

// calibration is a forecast of the calls that calibrate an election.
type calibration struct {
	*Pipeline
	explicit bool
	forecast func(*pipeline.Stage, sdk.Item) (sdk.Forecast, error)

	mu     sync.Mutex
	bill   outcome.Bill
	tokens uint64
}

func (p *Pipeline) newCalibration(ctx context.Context, of *stage.Calibration) (c *calibration, err error) {
	c = &calibration{Pipeline: p, explicit: of.Explicit}
	c.forecast, err = p.spendForecast(ctx, p.limit())
	return c, err
}

// add adds the calls of a voter about a row, with all resamples.
func (c *calibration) add(voter *pipeline.Stage, item sdk.Item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, err := c.forecast(voter, item)
	if err != nil { // forecasting failed, so asking would fail, too
		f = sdk.Forecast{Requests: 1}
	}
	c.bill.Calls += (1 + voter.Resamples) * f.Requests
	c.tokens += f.Likely.InputTokens + f.Likely.OutputTokens
	if price := voter.CallPrice(); price != nil {
		c.bill.Cost += price.Of(f.Likely)
		c.bill.Most += float64(1+voter.Resamples) * price.AtMost(f.Most)
	}
}

// afford returns an error if the calls would take too much of a limit.
func (c *calibration) afford() error {
	times, limit, budget := few, c.limit(), c.workspace.budget(c.chosen)
	if c.explicit {
		times = 1
	}
	var over error
	check := func(takes, of float64, what string) {
		if float64(times)*takes > of {
			over = fmt.Errorf("asking about the examples may take %.6g of %.6g %s: %w", takes, of, what, errUnaffordable)
		}
	}
	if limit.Calls != nil {
		check(float64(c.bill.Calls), limit.Amount(), "calls")
	} else if limit.Money != nil {
		check(max(c.bill.Cost, c.bill.Most), limit.Amount(), "in money")
	}
	if budget.Cost > 0 {
		check(c.bill.Cost, budget.Cost, "in max_cost")
	}
	if budget.Tokens > 0 {
		check(float64(c.tokens), float64(budget.Tokens), "tokens in max_tokens")
	}
	return over
}
