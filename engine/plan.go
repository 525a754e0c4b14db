package engine

import (
	"context"

	"github.com/racflow/racflow/engine/plan"
)

// Plan finds out what a run would build and call, and what that would cost. It asks
// no service. Up to 500 items go through the other stages, for which knowledge that
// is embedded on this machine is brought up to date.
func (p *Pipeline) Plan(ctx context.Context) (*plan.Plan, error) {
	w := p.workspace
	o := plan.Options{
		Launch: p.launch, Fitted: w.fitted(), Samples: w.samples(), Forecaster: p.voterForecaster(knowing{models: true, cache: true}), Spending: p.spendForecast, Enricher: p.enrichForecaster, Spend: w.options.Spend, Models: p.known,
		Knowledge: w.options.Events.Knowledge, Progress: w.progress,
	}
	if p.InputPath() != "-" { // which is left for the run
		o.Rows = func() (plan.Rows, error) { return p.Rows() }
	}
	found, err := plan.Make(ctx, p.file, p.chosen, o)
	if err != nil {
		return nil, p.explain(err)
	}
	return found, nil
}
