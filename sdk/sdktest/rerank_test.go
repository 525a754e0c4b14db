package sdktest

import (
	"context"
	"testing"

	"github.com/racflow/racflow/sdk"
)

// reranker is a reranker made from a function over the candidates of an item.
type reranker func([]sdk.Candidate) []sdk.Ranked

func (r reranker) Rerank(_ context.Context, b sdk.Batch) ([][]sdk.Ranked, error) {
	out := make([][]sdk.Ranked, len(b.Items))
	for i, it := range b.Items {
		out[i] = r(it.Candidates)
	}
	return out, nil
}

func rerankStage(r reranker) sdk.Stage {
	return sdk.RerankStage("order", "Reranks.", func(context.Context, sdk.Setup, none) (sdk.Reranker, error) { return r, nil })
}

func TestRerankers(t *testing.T) {
	Stage(t, rerankStage(func(all []sdk.Candidate) []sdk.Ranked { // the worst half, reversed
		var out []sdk.Ranked
		for i := len(all) - 1; i >= len(all)/2; i-- {
			out = append(out, sdk.Ranked{Candidate: i, Score: float32(i)})
		}
		return out
	}), "{}")
	for name, c := range map[string]struct {
		r    reranker
		want string
	}{
		"one that there is not": {func(all []sdk.Candidate) []sdk.Ranked { return []sdk.Ranked{{Candidate: len(all)}} }, "candidate 12 of 12 in row 0"},
		"one of them twice": {func(all []sdk.Candidate) []sdk.Ranked {
			return make([]sdk.Ranked, min(2*len(all), 2))
		}, "stands twice"},
		"a score that is no number": {func(all []sdk.Candidate) []sdk.Ranked {
			return []sdk.Ranked{{Score: sdk.Unscored}}[:min(len(all), 1)]
		}, "score NaN"},
	} {
		t.Run(name, func(t *testing.T) { wantFault(t, rerankStage(c.r), "one result per row", c.want) })
	}
}
