package soft

import (
	"context"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

type config struct {
	Weights map[string]string `config:"weights" doc:"How much each voter's ballot counts, by the name of its sample block; 1 if not given."`
}

// Stage describes the election.
func Stage() sdk.Stage {
	return sdk.ElectStage("soft", "Averages the voters' distributions over the accepted answers; the greatest share wins.", open)
}

func open(_ context.Context, _ sdk.Setup, c config) (sdk.Elector, error) {
	weights, err := ballot.ParseWeights("weights", c.Weights)
	return election{weights}, err
}

type election struct{ weights ballot.Weights }

func (e election) Elect(_ context.Context, b sdk.Batch) ([]sdk.Verdict, error) {
	verdicts := make([]sdk.Verdict, len(b.Items))
	for i, item := range b.Items {
		verdicts[i] = ballot.Verdict(ballot.Mean(item.Samples, e.weights))
	}
	return verdicts, nil
}
