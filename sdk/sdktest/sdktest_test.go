package sdktest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/conformance"
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

// promptly is how soon a stage of these tests has to notice that it is cancelled: faulty ones
// are found out sooner than others.
const promptly = 2 * time.Second

// options are those of a faulty stage.
func options() *conformance.Options {
	o := conformance.NewOptions()
	o.Promptly, o.Short = promptly, testing.Short()
	return o
}

// faults runs the checks of one name, or below it, and returns what they say.
func faults(t *testing.T, stage sdk.Stage, name string, o *conformance.Options) string {
	t.Helper()
	checks := slices.DeleteFunc(conformance.Checks(stage), func(c conformance.Check) bool {
		return !strings.HasPrefix(c.Name+"/", name+"/")
	})
	if len(checks) == 0 {
		t.Fatalf("there is no check %q", name)
	}
	var all []string
	conformance.Collect(t.Context(), t.TempDir(), &conformance.Subject{Stage: stage, Config: "{}", Start: inMemory(stage), Options: o}, checks, func(r conformance.Result) {
		if r.Status != conformance.Failed {
			return
		}
		all = append(all, r.Messages...)
		if r.Why == "" || r.Fix == "" || strings.Contains(r.Why+r.Fix, "\n") {
			t.Errorf("%s says neither why it is there nor what to do, in a line each", r.Name)
		}
	})
	return strings.Join(all, "\n")
}

// wantFault checks that a stage which does one thing wrong fails the check that is there for it.
func wantFault(t *testing.T, stage sdk.Stage, check, want string) {
	t.Helper()
	got := faults(t, stage, check, options())
	for again := 0; check == "gives up when cancelled" && got == "" && again < 50; again++ { // a busy machine may cancel a call before the stage gets it
		got = faults(t, stage, check, options())
	}
	if !strings.Contains(got, want) {
		t.Errorf("%s: got %q, want %q in it", check, got, want)
	}
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
				time.Sleep(promptly + time.Second)
			}
			return make([][]sdk.Sample, len(b.Items)), nil
		}, "gives up when cancelled", "after a cancelled call"},
	} {
		t.Run(name, func(t *testing.T) {
			wantFault(t, stageOf(c.v), c.check, c.want)
		})
	}
	undocumented := sdk.SampleStage("x", "", func(context.Context, sdk.Setup, struct {
		K int `config:"k"`
	}) (sdk.Sampler, error) {
		return voter(first), nil
	})
	wantFault(t, undocumented, "description", "argument k has no doc")
}
