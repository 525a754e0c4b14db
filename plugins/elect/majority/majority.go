package majority

import (
	"context"
	"log/slog"
	"maps"

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
	return &election{weights: c.Weights, log: setup.Log}, nil
}

type election struct {
	weights ballot.Weights
	roll    ballot.Roll
	log     *slog.Logger
}

func (e *election) Elect(_ context.Context, b sdk.Batch) ([]sdk.Verdict, error) {
	e.roll.Note(b)
	verdicts := make([]sdk.Verdict, len(b.Items))
	for i, item := range b.Items {
		var votes ballot.Tally
		for _, s := range item.Samples {
			if label, ok := ballot.Best(s); ok {
				votes.Add(label, e.weights.Of(s.Voter))
			}
		}
		verdicts[i] = ballot.Weighed(votes.Shares(), item.Samples)
	}
	return verdicts, nil
}

// Close warns of weights that were nobody's.
func (e *election) Close() error {
	e.roll.Report(e.log, "weights", maps.Keys(e.weights))
	return nil
}
