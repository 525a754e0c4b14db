package sdktest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
)

// counter is an election that learns how many votes it has seen, and elects by that number.
type counter struct {
	dir, fault string
	votes      int
}

func (c *counter) Elect(_ context.Context, b sdk.Batch) ([]sdk.Verdict, error) {
	verdicts := make([]sdk.Verdict, len(b.Items))
	for i := range verdicts {
		verdicts[i] = sdk.Verdict{Answer: fmt.Sprint(c.votes), Agreement: 1}
	}
	if c.fault == "needs to learn" && c.votes == 0 {
		return nil, errors.New("nothing was learnt")
	}
	return verdicts, nil
}

func (c *counter) Fit(_ context.Context, rows iter.Seq2[[]sdk.TrainingRow, error]) error {
	for batch, err := range rows {
		if err != nil {
			return err
		}
		for _, r := range batch {
			if r.Label == "" && c.fault == "needs a label" {
				return errors.New("a row has no label")
			}
			c.votes += len(r.Samples)
		}
	}
	if c.fault == "keeps nothing" {
		return nil
	}
	return os.WriteFile(filepath.Join(c.dir, "votes"), []byte(strings.Repeat(".", c.votes)), 0o600)
}

func counts(fault string) sdk.Stage {
	return sdk.ElectStage("counter", "Counts.", func(_ context.Context, s sdk.Setup, _ none) (sdk.Elector, error) {
		raw, _ := os.ReadFile(filepath.Join(s.StateDir, "votes"))
		if fault == "forgets" {
			raw = nil
		}
		return &counter{s.StateDir, fault, len(raw)}, nil
	}, sdk.Fits(sdk.ColumnSamples))
}

func TestFitters(t *testing.T) {
	Stage(t, counts(""), "{}")
	for fault, want := range map[string]string{
		"keeps nothing":  "fit has written nothing",
		"forgets":        "in a later process: got",
		"needs to learn": "before it was fitted: ",
		"needs a label":  "fit: a row has no label",
	} {
		t.Run(fault, func(t *testing.T) { wantFault(t, counts(fault), "what was learnt is carried over", want) })
	}
}
