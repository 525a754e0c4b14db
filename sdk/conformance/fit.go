package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/remote"
)

// fit fits a stage, in two batches, and returns the folder with what it has learnt.
func fit(t T, s *remote.Stage, stage sdk.Stage) (string, error) {
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
		return remote.StateDir(t.TempDir(), state)
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
var carriedOver = Check{
	Name: "what was learnt is carried over", Within: Longest,
	Why: "A stage is fitted once; every later process works by what is in its state_dir.",
	Fix: "Write all that Fit learns into state_dir, and read it when the stage opens.",
	Run: func(t T, s *Subject) error {
		setup := s.Setup(t)
		first, err := s.Open(t, setup)
		if err != nil || !first.Stage.Fits() {
			return err
		}
		ctx, kind := t.Context(), s.Stage.Kind
		if _, err := outputs(ctx, first.Stage, kind); err != nil {
			return fmt.Errorf("before it was fitted: %w", err)
		}
		if setup.StateDir, err = fit(t, first.Stage, s.Stage); err != nil {
			return err
		}
		want, err := outputs(ctx, first.Stage, kind)
		if err != nil {
			return fmt.Errorf("after it was fitted: %w", err)
		}
		later, err := s.Open(t, setup)
		if err != nil {
			return fmt.Errorf("with what was learnt: %w", err)
		}
		got, err := outputs(ctx, later.Stage, kind)
		for i := range got {
			if d := equal(got[i], want[i]); err == nil && d != "" && !s.Stage.Network {
				err = fmt.Errorf("row %d in a later process: %s", i, d)
			}
		}
		return err
	},
}

// outputs are what a stage that may be fitted does with a few rows.
func outputs(ctx context.Context, s *remote.Stage, kind sdk.Kind) ([]string, error) {
	if kind == sdk.KindEmbed {
		return flatten(s.Embed(ctx, sdk.RolePassage, texts))
	}
	return results(ctx, s, kind, items(9))
}
