package sdktest

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/remote"
	"github.com/racflow/racflow/sdk/sdktest/internal/harness"
)

// fit fits a stage, in two batches, and returns the folder with what it has learnt.
func fit(t testing.TB, s *remote.Stage, stage sdk.Stage) (string, error) {
	rows := trainingRows()
	err := s.Fit(t.Context(), func(yield func([]sdk.TrainingRow, error) bool) {
		_ = yield(rows[:7], nil) && yield(rows[7:], nil)
	})
	if err != nil {
		return "", fmt.Errorf("fit: %w", err)
	}
	if stage.Kind == sdk.KindEmbed {
		state, err := s.State()
		if err != nil {
			return "", err
		}
		return StateDir(t, stage, t.TempDir(), state), nil
	}
	files, err := os.ReadDir(s.StateDir)
	if err == nil && len(files) == 0 {
		err = errors.New("fit has written nothing into the state_dir")
	}
	return s.StateDir, err
}

// trainingRows have all that a stage may learn from: labels that texts, vectors and votes
// tell apart. Some have no label, no text that is one, or no votes.
func trainingRows() []sdk.TrainingRow {
	b := items(30)
	rows := make([]sdk.TrainingRow, len(b.Items))
	for i, it := range b.Items {
		label := i % len(b.Labels)
		rows[i] = sdk.TrainingRow{ID: it.ID, Label: b.Labels[label], Text: it.Text + " " + b.Labels[label], Vector: make([]float32, 3), Samples: slices.Clone(it.Samples)}
		rows[i].Vector[label] = 1
	}
	rows[4].Label = ""
	return rows
}

// carriedOver checks that a later process does what the one does that was fitted. One that
// was not fitted works, too: what it lacks fails rows at most.
func carriedOver(t testing.TB, stage sdk.Stage, config string) error {
	first, setup, err := start(t, stage, config)
	if err != nil || !first.Stage.Fits() {
		return err
	}
	b, ctx := items(9), t.Context()
	if _, err := results(ctx, first.Stage, stage.Kind, b); err != nil {
		return fmt.Errorf("before it was fitted: %w", err)
	}
	if setup.StateDir, err = fit(t, first.Stage, stage); err != nil {
		return err
	}
	want, err := results(ctx, first.Stage, stage.Kind, b)
	if err != nil {
		return fmt.Errorf("after it was fitted: %w", err)
	}
	later, err := harness.Start(t, stage, setup, config)
	if err != nil {
		return fmt.Errorf("with what was learnt: %w", err)
	}
	got, err := results(ctx, later.Stage, stage.Kind, b)
	for i := range got {
		if d := equal(got[i], want[i]); err == nil && d != "" && !stage.Network {
			err = fmt.Errorf("row %d in a later process: %s", i, d)
		}
	}
	return err
}
