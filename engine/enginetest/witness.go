package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"path/filepath"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

// Witnessed is a row with the votes on it that an election learnt from.
type Witnessed struct {
	ID, Label string
	Samples   []sdk.Sample
	HeldOut   bool
}

// WitnessFile is where Witness keeps, in its state_dir, all that it learnt from.
const WitnessFile = "votes.json"

// Witness is an election that learns from votes: it keeps them, and elects as Soft does.
// It has resolved that a voter weighs as much as the share of the rows that it was right
// on, and twice that on rows held out of the knowledge.
func Witness() sdk.Stage {
	return sdk.ElectStage("witness", "Keeps the votes that it learns from.", func(_ context.Context, setup sdk.Setup, w weights) (sdk.Elector, error) {
		soft := election(func(samples []sdk.Sample) []sdk.Answer { return ballot.Mean(samples, w.Weights) })
		if len(w.Weights) > 0 {
			return soft, nil
		}
		return &witness{soft, filepath.Join(setup.StateDir, WitnessFile)}, nil
	}, sdk.Fits(sdk.ColumnSamples), sdk.Reads(sdk.ColumnLabels))
}

type witness struct {
	election
	file string
}

func (w *witness) Fit(_ context.Context, rows iter.Seq2[[]sdk.TrainingRow, error]) error {
	all := []Witnessed{}
	for batch, err := range rows {
		if err != nil {
			return err
		}
		for _, row := range batch {
			all = append(all, Witnessed{row.ID, row.Label, row.Samples, row.HeldOut})
		}
	}
	raw, err := json.Marshal(all)
	return errors.Join(err, os.WriteFile(w.file, raw, 0o600))
}

// Resolved implements sdk.Resolver.
func (w *witness) Resolved() map[string]any {
	var rows []Witnessed
	raw, err := os.ReadFile(w.file)
	if err != nil || json.Unmarshal(raw, &rows) != nil {
		return nil // it has learnt nothing yet
	}
	weights := map[string]float64{}
	for _, row := range rows {
		right := 1 / float64(len(rows))
		if row.HeldOut {
			right *= 2
		}
		for _, s := range row.Samples {
			label, ok := ballot.Best(s)
			if weights[s.Voter] += 0; ok && label == row.Label {
				weights[s.Voter] += right
			}
		}
	}
	return map[string]any{"weights": weights}
}
