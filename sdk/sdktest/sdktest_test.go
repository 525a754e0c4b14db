package sdktest

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/internal/harness"
)

type none struct{}

// voter is a sampler made of a function.
type voter func(context.Context, sdk.Batch) ([][]sdk.Sample, error)

func (v voter) Sample(ctx context.Context, b sdk.Batch) ([][]sdk.Sample, error) { return v(ctx, b) }

func stageOf(v voter) sdk.Stage {
	return sdk.SampleStage("voter", "Votes.", func(context.Context, sdk.Setup, none) (sdk.Sampler, error) { return v, nil },
		sdk.Reads(sdk.ColumnText, sdk.ColumnCandidates))
}

func first(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	out := make([][]sdk.Sample, len(b.Items))
	failed := sdk.RowErrors{}
	for i, it := range b.Items {
		switch {
		case it.Text == "":
			failed[i] = errors.New("no text")
		case len(it.Candidates) > 0:
			out[i] = []sdk.Sample{{Answers: []sdk.Answer{{Label: it.Candidates[0].Label, Weight: 1}}}}
		}
	}
	if len(failed) > 0 {
		return out, failed
	}
	return out, nil
}

func TestGoodStagePasses(t *testing.T) { Stage(t, stageOf(first), "{}") }

// Faulty stages are found out sooner than others.
func TestMain(m *testing.M) {
	harness.Promptly = 2 * time.Second
	os.Exit(m.Run())
}

func TestFaultyStagesFail(t *testing.T) {
	for name, c := range map[string]struct {
		v     voter
		check string
		want  string
	}{
		"a row too few": {func(context.Context, sdk.Batch) ([][]sdk.Sample, error) { return nil, nil },
			"one result per row", "0 results for 1 rows"},
		"panics": {func(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
			return [][]sdk.Sample{{{Voter: b.Items[0].ID}}}, nil
		}, "one result per row", "panic in the plugin"},
		"random": {func(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
			out := make([][]sdk.Sample, len(b.Items))
			for i := range out {
				out[i] = []sdk.Sample{{Answers: []sdk.Answer{{Weight: rand.Float64()}}}}
			}
			return out, nil
		}, "same row, same result", "before it was"},
		"deaf": {func(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
			if len(b.Items) > 0 {
				time.Sleep(harness.Promptly + time.Second)
			}
			return make([][]sdk.Sample, len(b.Items)), nil
		}, "gives up when cancelled", "after a cancelled call"},
	} {
		t.Run(name, func(t *testing.T) {
			err := batchChecks[c.check](t, stageOf(c.v), "{}")
			for again := 0; name == "deaf" && err == nil && again < 50; again++ { // a busy machine may cancel a call before the stage gets it
				err = batchChecks[c.check](t, stageOf(c.v), "{}")
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	undocumented := sdk.SampleStage("x", "", func(context.Context, sdk.Setup, struct {
		K int `config:"k"`
	}) (sdk.Sampler, error) {
		return voter(first), nil
	})
	if err := description(undocumented); err == nil || !strings.Contains(err.Error(), "argument k has no doc") {
		t.Errorf("got %v", err)
	}
}
