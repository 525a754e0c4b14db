package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"sync"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/process/confine"
	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/spend"
	"github.com/racflow/racflow/engine/internal/run/stage"
	"github.com/racflow/racflow/engine/internal/show/plan"
	"github.com/racflow/racflow/sdk"
)

// This file decides whether a run calibrates its election (stage.Graph.Calibrate). If the file does
// not say, it does where the calls are free, or few beside those of the run, and take at most a
// tenth of every limit on what the run may use. Calls that the file asks for are made unless they
// alone would exceed a limit.

// few is the least ratio of the items of a run, or of a limit, to what calibrating takes, if the
// file does not ask for that.
const few = 10

// calibrate lets the election of a new run learn from answers of the voters that call services, if
// that is wanted and has not been done before. input: the items are those of the input.
func (p *Pipeline) calibrate(ctx context.Context, r *run.Run, input bool) error {
	c := r.Graph().Calibration()
	if c == nil || c.Done || p.began != nil || p.workspace.options.uncalibrated {
		return nil
	}
	if wanted, err := p.calibrates(c, input); err != nil || !wanted {
		return err
	}
	by, err := p.newCalibrator(ctx, c)
	if err != nil {
		return err
	}
	err = r.Graph().Calibrate(ctx, p.launch, by)
	p.spent = by.spent
	var without *stage.UncalibratedError
	switch {
	case !errors.As(err, &without):
		return err
	case c.Explicit || !errors.Is(err, errUnaffordable): // else nobody has asked for it
		p.unlearnt = true
		p.advise("%v", err)
	}
	return nil
}

// calibrating says what calibrate would do for a run over the input, whose stages g has.
func (p *Pipeline) calibrating(ctx context.Context, g *stage.Graph, launch stage.Launch) (*plan.Calibrating, error) {
	known := g.Calibration()
	switch {
	case known == nil:
		return nil, nil //nolint:nilnil // there is nothing to say
	case known.Done:
		return &plan.Calibrating{Calibration: known}, nil
	}
	by, err := p.newCalibrator(ctx, known)
	if err == nil {
		err = g.Foresee(ctx, launch, by)
	}
	c := &plan.Calibrating{Calibration: known, Bill: by.ahead}
	if err == nil && by.Afford() == nil {
		c.Wanted, err = p.calibrates(known, true)
	}
	return c, err
}

// Uncalibrated says what the votes of voters that call services rest on, and what would calibrate
// them; empty: the election has learnt about them or learns nothing, or Events.Advice has said why
// it has not. The stages must have been started.
func (p *Pipeline) Uncalibrated() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ready == nil || p.unlearnt {
		return ""
	}
	c := p.ready.Graph().Calibration()
	if c == nil || c.Done {
		return ""
	}
	return c.Note()
}

// calibrates reports whether a run asks the voters about held-out rows, as far as limits allow it.
// input: the items are those of the input.
func (p *Pipeline) calibrates(c *stage.Calibration, input bool) (bool, error) {
	later := slices.ContainsFunc(c.Voters, func(s *pipeline.Stage) bool { return s.Info.Pends })
	switch {
	case c.Explicit:
		return true, nil
	case later || p.workspace.options.Services.Mode == governor.Offline:
		return false, nil
	case !slices.ContainsFunc(c.Voters, func(s *pipeline.Stage) bool { return !free(s) }):
		return true, nil
	case !input || !p.rereadable():
		return false, nil
	}
	return p.Reaches(int64(few * c.Rows))
}

// free reports whether the calls of a voter and its fallbacks cost nothing: they have a price of 0 or,
// without a price, go to this machine.
func free(s *pipeline.Stage) bool {
	if slices.ContainsFunc(s.Fallbacks, func(f pipeline.Fallback) bool { return f.Stage.Info.Network && !free(f.Stage) }) {
		return false
	}
	if s.Price != nil {
		return s.Price.Input == 0 && s.Price.Cached == 0 && s.Price.Output == 0
	}
	var hosts []string
	if s.Program != nil {
		hosts = s.Program.Allow.Hosts
	}
	for _, address := range s.Info.Addresses(s.Config.Open) {
		u, err := url.Parse(address)
		if err != nil {
			return false
		}
		hosts = append(hosts, net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "80")))
	}
	return len(hosts) > 0 && len(confine.Loopback(hosts)) == len(hosts)
}

// limit returns the limit on what voters use that call services.
func (p *Pipeline) limit() spend.Limit {
	if limit := p.workspace.options.Spend; limit.IsSet() {
		return limit
	}
	return p.spendable
}

var errUnaffordable = errors.New("a limit does not allow it")

// affords returns an error if calls of voters about held-out rows would take too much of a limit.
func (p *Pipeline) affords(b outcome.Bill, tokens uint64, explicit bool) error {
	budget, limit, times := p.workspace.options.Services.budget(p.chosen), p.limit(), float64(few)
	if explicit {
		times = 1
	}
	over := func(amount, of float64) bool { return times*amount > of }
	switch {
	case limit.Calls != nil && over(limit.Most(b), limit.Amount()):
		return fmt.Errorf("asking about the examples may take %d of %d calls: %w", b.Calls, *limit.Calls, errUnaffordable)
	case limit.Money != nil && over(limit.Most(b), limit.Amount()):
		return fmt.Errorf("asking about the examples may cost %s of %s: %w", governor.Money(limit.Most(b)), governor.Money(*limit.Money), errUnaffordable)
	case budget.Cost > 0 && over(b.Cost, budget.Cost):
		return fmt.Errorf("asking about the examples costs about %s of max_cost = %s: %w", governor.Money(b.Cost), governor.Money(budget.Cost), errUnaffordable)
	case budget.Tokens > 0 && over(float64(tokens), float64(budget.Tokens)):
		return fmt.Errorf("asking about the examples takes about %d of max_tokens = %d: %w", tokens, budget.Tokens, errUnaffordable)
	}
	return nil
}

// calibrator forecasts and counts the calls that calibrate an election. It is a stage.Calibrator.
type calibrator struct {
	*Pipeline
	explicit bool
	spender  *spend.Spender // only forecasts

	mu     sync.Mutex
	ahead  outcome.Bill // of all calls
	tokens uint64       // of all calls; the spender's forecasts add to it, one at a time
	spent  outcome.Bill
}

func (p *Pipeline) newCalibrator(ctx context.Context, of *stage.Calibration) (*calibrator, error) {
	forecast, err := p.spendForecast(ctx, p.limit())
	c := &calibrator{Pipeline: p, explicit: of.Explicit}
	c.spender = spend.New(spend.Options{Cost: p.chosen.Cost, Forecast: func(voter *pipeline.Stage, item sdk.Item) (sdk.Forecast, error) {
		f, err := forecast(voter, item)
		c.tokens += f.Likely.InputTokens + f.Likely.OutputTokens
		return f, err
	}})
	return c, err
}

// Foresee implements stage.Calibrator.
func (c *calibrator) Foresee(voter *pipeline.Stage, item sdk.Item) {
	b := c.spender.Forecast(voter, item, true)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead.Calls += b.Calls
	c.ahead.Cost += b.Cost
	c.ahead.Most += b.Most
}

// Afford implements stage.Calibrator.
func (c *calibrator) Afford() error { return c.affords(c.ahead, c.tokens, c.explicit) }

// Ask implements stage.Calibrator.
func (c *calibrator) Ask(voter *pipeline.Stage, item sdk.Item) {
	b := c.spender.Forecast(voter, item, false)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spent.Calls += b.Calls
}

// Used implements stage.Calibrator.
func (c *calibrator) Used(voter string, u sdk.Usage) { c.spent.Cost += c.chosen.Cost(voter, u) }
