package ballot

import (
	"context"
	"log/slog"
	"maps"

	"github.com/racflow/racflow/sdk"
)

// NewElection returns an elector that elects item by item, by its samples and the number
// of labels in the knowledge. When it is closed, it warns of names in an argument that
// no voter had: see Roll.Report. byVoter is the value of that argument.
func NewElection(log *slog.Logger, argument string, byVoter map[string]float64, elect func(samples []sdk.Sample, labels int) sdk.Verdict) sdk.Elector {
	return &election{log: log, argument: argument, byVoter: byVoter, elect: elect}
}

type election struct {
	log      *slog.Logger
	argument string
	byVoter  map[string]float64
	elect    func([]sdk.Sample, int) sdk.Verdict
	roll     Roll
}

// Elect implements sdk.Elector.
func (e *election) Elect(_ context.Context, b sdk.Batch) ([]sdk.Verdict, error) {
	e.roll.Note(b)
	verdicts := make([]sdk.Verdict, len(b.Items))
	for i := range b.Items {
		verdicts[i] = e.elect(b.Items[i].Samples, len(b.Labels))
	}
	return verdicts, nil
}

// Close warns of names that no voter had.
func (e *election) Close() error {
	e.roll.Report(e.log, e.argument, maps.Keys(e.byVoter))
	return nil
}
