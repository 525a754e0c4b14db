package majority

import (
	"context"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

type config struct {
	Weights map[string]float64 `config:"weights" min:"0" max:"1e6" example:"{ llm = 2 }" doc:"How many votes each sample of a voter counts, by the name of its sample block; 1 if not given."`
}

// Stage describes the election.
func Stage() sdk.Stage {
	return sdk.ElectStage("majority", "Counts the best accepted answer of every sample; the first voter wins a tie.", open, sdk.Revision("1"))
}

func open(_ context.Context, setup sdk.Setup, c config) (sdk.Elector, error) {
	return ballot.NewElection(setup.Log, "weights", c.Weights, func(samples []sdk.Sample, _ int) sdk.Verdict {
		var votes ballot.Tally
		for _, s := range samples {
			if label, ok := ballot.Best(s); ok {
				votes.Add(label, ballot.Weights(c.Weights).Of(s.Voter))
			}
		}
		return ballot.Weighed(votes.Shares(), samples)
	}), nil
}
