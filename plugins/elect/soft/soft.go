package soft

import (
	"context"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

type config struct {
	Weights map[string]float64 `config:"weights" min:"0" max:"1e6" example:"{ llm = 2 }" doc:"How much each voter's ballot counts, by the name of its sample block; 1 if not given."`
}

// Stage describes the election.
func Stage() sdk.Stage {
	return sdk.ElectStage("soft", "Averages the voters' distributions over the accepted answers; the greatest share wins.", open, sdk.Revision("1"))
}

func open(_ context.Context, setup sdk.Setup, c config) (sdk.Elector, error) {
	return ballot.NewElection(setup.Log, "weights", c.Weights, func(samples []sdk.Sample, _ int) sdk.Verdict {
		return ballot.Weighed(ballot.Mean(samples, c.Weights), samples)
	}), nil
}
