package soft

import (
	"context"
	"log/slog"
	"maps"

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
		verdicts[i] = ballot.Weighed(ballot.Mean(item.Samples, e.weights), item.Samples)
	}
	return verdicts, nil
}

// Close warns of weights that were nobody's.
func (e *election) Close() error {
	e.roll.Report(e.log, "weights", maps.Keys(e.weights))
	return nil
}
