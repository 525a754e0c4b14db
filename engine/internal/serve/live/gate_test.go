package live

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

type gateConfig struct {
	Folder sdk.Path `config:"folder" doc:"Where files say what waits, and what may go on."`
}

// gate is a voter that holds items whose text begins with "slow" until its folder has a file named open. It
// writes a file there for each item, with the number of items of the batch.
func gate() sdk.Stage {
	return sdk.SampleStage("gate", "A voter of the test.", func(_ context.Context, _ sdk.Setup, c gateConfig) (sdk.Sampler, error) {
		return gated(c.Folder), nil
	}, sdk.Reads(sdk.ColumnText))
}

type gated string

func (g gated) Sample(ctx context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	for _, item := range b.Items {
		if err := os.WriteFile(filepath.Join(string(g), item.ID), fmt.Append(nil, len(b.Items)), 0o600); err != nil {
			return nil, err
		}
	}
	for _, item := range b.Items {
		if !strings.HasPrefix(item.Text, "slow") {
			continue
		}
		for !there(string(g), "open") {
			if err := support.SleepFor(ctx, time.Millisecond); err != nil {
				return nil, os.WriteFile(filepath.Join(string(g), "ended-"+item.ID), nil, 0o600)
			}
		}
	}
	return make([][]sdk.Sample, len(b.Items)), nil
}

func there(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// await waits until a file exists.
func await(t testing.TB, dir, name string) {
	t.Helper()
	for !there(dir, name) {
		if support.SleepFor(t.Context(), time.Millisecond) != nil {
			t.Fatalf("%s does not come", name)
		}
	}
}
