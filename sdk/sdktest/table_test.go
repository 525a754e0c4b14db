package sdktest

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/conformance"
)

// ballots returns a voter's answers, one for each row.
func ballots(weigh func(i int, b sdk.Batch) float64) voter {
	return func(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
		out := make([][]sdk.Sample, len(b.Items))
		for i := range out {
			out[i] = []sdk.Sample{{Answers: []sdk.Answer{{Label: "x", Weight: weigh(i, b)}}}}
		}
		return out, nil
	}
}

// embedder is an embedder made from a function over a batch of texts.
type embedder func([]string) [][]float32

func (embedder) Dimension() int { return 2 }

func (e embedder) Embed(_ context.Context, _ sdk.Role, texts []string) ([][]float32, error) {
	return e(texts), nil
}

func embedStage(e embedder) sdk.Stage {
	return sdk.EmbedStage("point", "Points.", func(context.Context, sdk.Setup, none) (sdk.Embedder, error) { return e, nil })
}

// each embeds texts one by one.
func each(vector func(string) []float32) embedder {
	return func(texts []string) [][]float32 {
		out := make([][]float32, len(texts))
		for i, t := range texts {
			out[i] = vector(t)
		}
		return out
	}
}

func TestEmbedders(t *testing.T) {
	Stage(t, embedStage(each(func(string) []float32 { return []float32{1, 0} })), "{}")
}

// TestTheTable: a stage with one fault fails the check for this fault.
func TestTheTable(t *testing.T) {
	nan := float32(math.NaN())
	for name, c := range map[string]struct {
		stage       sdk.Stage
		check, want string
	}{
		"needs a candidate": {stageOf(ballots(func(i int, b sdk.Batch) float64 { return float64(b.Items[i].Candidates[0].Score) })), "nothing to work with", "panic in the plugin"},
		"knows ASCII alone": {stageOf(ballots(func(i int, b sdk.Batch) float64 {
			if b.Items[i].Text == "" {
				return 0
			}
			return make([]float64, 128)[b.Items[i].Text[0]]
		})), "texts of every script", "panic in the plugin"},
		"divides by nothing": {stageOf(ballots(func(i int, b sdk.Batch) float64 {
			if len(b.Items[i].Candidates) == 0 {
				return 0
			}
			return float64(b.Items[i].Candidates[0].Dense)
		})), "numbers are finite", "weight NaN"},
		"reads what it likes": {stageOf(ballots(func(i int, b sdk.Batch) float64 {
			if b.Items[i].Meta["channel"] == "chat" {
				return 1
			}
			return 2
		})), "reads what it declares", "that it does not declare filled: got"},
		"turns the scores round": {rerankStage(func(all []sdk.Candidate) []sdk.Ranked {
			out := make([]sdk.Ranked, len(all))
			for i := range out {
				out[i] = sdk.Ranked{Candidate: i, Score: float32(i)}
			}
			return out
		}), "scores fall", "score 1 at place 2 follows score 0"},
		"a vector too few": {embedStage(func(texts []string) [][]float32 { return make([][]float32, max(0, len(texts)-1)) }), "one vector per text", "results for"},
		"norm 2":           {embedStage(each(func(string) []float32 { return []float32{2, 0} })), "vectors are finite and of norm 1", "norm 2"},
		"not a number":     {embedStage(each(func(string) []float32 { return []float32{nan, 0} })), "vectors are finite and of norm 1", "NaN"},
		"of the batch": {embedStage(func(texts []string) [][]float32 {
			return each(func(string) []float32 {
				return []float32{[]float32{0, 1}[min(len(texts)-1, 1)], []float32{1, 0}[min(len(texts)-1, 1)]}
			})(texts)
		}), "same text, same vector", "away from its vector before"},
	} {
		t.Run(name, func(t *testing.T) { wantFault(t, c.stage, c.check, c.want) })
	}
}

// TestHangingStage: a stage that never answers fails the checks that ask it, each after its own
// deadline, and the other checks run.
func TestHangingStage(t *testing.T) {
	never := stageOf(func(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
		if len(b.Items) > 0 {
			select {}
		}
		return nil, nil
	})
	o := options()
	o.Within = 300 * time.Millisecond
	ended := map[string]conformance.Result{}
	subject := &conformance.Subject{Stage: never, Config: "{}", Start: inMemory(never), Options: o}
	for _, check := range conformance.Checks(never) {
		ended[check.Name] = check.On(t.Context(), t.TempDir(), subject)
	}
	if len(ended) != len(conformance.Checks(never)) || ended["description"].Status != conformance.Passed {
		t.Errorf("%d checks, %+v", len(ended), ended["description"])
	}
	for _, name := range []string{"one result per row", "same row, same result", "texts of every script"} {
		if r := ended[name]; r.Status != conformance.Failed || !strings.Contains(strings.Join(r.Messages, "\n"), "the check did not end within 300ms") {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
