package estimate

import (
	"context"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// Forecasts opens the voters of a pipeline that call services, and their fallbacks, and
// returns what says what it takes to ask one of them about an item. open returns nil for
// a voter that does not say; it is not called for others.
func Forecasts(ctx context.Context, p *pipeline.Pipeline, open func(context.Context, *pipeline.Stage) (sdk.Forecaster, error)) (func(*pipeline.Stage, sdk.Item) (sdk.Forecast, error), error) {
	asked := map[*pipeline.Stage]sdk.Forecaster{}
	add := func(s *pipeline.Stage) (err error) {
		if s.Info.Network {
			asked[s], err = open(ctx, s)
		}
		return err
	}
	for _, s := range p.Stages {
		if s.Block != "sample" || !s.Enabled {
			continue
		}
		if err := add(s); err != nil {
			return nil, err
		}
		for _, f := range s.Fallbacks {
			if err := add(f.Stage); err != nil {
				return nil, err
			}
		}
	}
	return func(s *pipeline.Stage, item sdk.Item) (sdk.Forecast, error) { return Forecast(s, asked[s], item) }, nil
}
