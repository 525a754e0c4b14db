package majority

import (
	"context"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

type config struct {
	Weights map[string]string `config:"weights" doc:"How many votes each sample of a voter counts, by the name of its sample block; 1 if not given."`
}

// Stage describes the election.
func Stage() sdk.Stage {
	return sdk.ElectStage("majority", "Counts the best accepted answer of every sample; the first voter wins a tie.", open)
}

func open(_ context.Context, _ sdk.Setup, c config) (sdk.Elector, error) {
	weights, err := ballot.ParseWeights("weights", c.Weights)
	return election{weights}, err
}

type election struct{ weights ballot.Weights }

func (e election) Elect(_ context.Context, b sdk.Batch) ([]sdk.Verdict, error) {
	verdicts := make([]sdk.Verdict, len(b.Items))
	for i, item := range b.Items {
		var votes ballot.Tally
		for _, s := range item.Samples {
			votes.Add(best(s), e.weights.Of(s.Voter))
		}
		verdicts[i] = ballot.Verdict(votes.Shares())
	}
	return verdicts, nil
}

// best returns the label of the best accepted answer, or "".
func best(s sdk.Sample) string {
	for _, a := range s.Answers {
		if a.Accepted {
			return a.Label
		}
	}
	return ""
}
