package neighbours

import (
	"context"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

type config struct {
	K         int     `config:"k" default:"30" min:"1" doc:"How many of the nearest candidates with a label vote."`
	Sharpness float64 `config:"sharpness" default:"15" min:"0" max:"1000" doc:"How much more a closer neighbour counts: votes weigh exp(sharpness * score). 0 gives each one vote."`
}

// Stage describes the voter.
func Stage() sdk.Stage {
	return sdk.SampleStage("neighbours", "Votes by the labels of the nearest neighbours, closer ones counting more (weighted kNN).",
		open, sdk.Revision("1"), sdk.Reads(sdk.ColumnCandidates))
}

func open(_ context.Context, _ sdk.Setup, c config) (sdk.Sampler, error) {
	return voter(c), nil
}

type voter config

func (v voter) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	samples := make([][]sdk.Sample, len(b.Items))
	for i, item := range b.Items {
		if answers := v.vote(item.Candidates); len(answers) > 0 {
			samples[i] = []sdk.Sample{{Answers: answers}}
		}
	}
	return samples, nil
}

// vote returns the labels with their shares, best first; labels that tie
// stand in the order of their nearest candidates.
func (v voter) vote(candidates []sdk.Candidate) []sdk.Answer {
	n := min(v.K, len(candidates))
	labels, scores := make([]string, 0, n), make([]float32, 0, n)
	for i := range candidates {
		if c := &candidates[i]; c.Label != "" && len(labels) < v.K {
			labels, scores = append(labels, c.Label), append(scores, c.Score)
		}
	}
	var votes ballot.Tally
	for i, weight := range ballot.Softmax(scores, v.Sharpness) {
		votes.Add(labels[i], weight)
	}
	return votes.Shares()
}
