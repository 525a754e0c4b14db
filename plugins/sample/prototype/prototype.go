package prototype

import (
	"context"
	"math"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

// least is the share below which an answer is left out: with hundreds of
// labels most of a ballot is such dust.
const least = 1e-6

type config struct {
	Sharpness float64 `config:"sharpness" default:"20" above:"0" max:"1000" doc:"How much more a nearer centroid counts: votes weigh exp(sharpness * cosine)."`
}

// Stage describes the voter.
func Stage() sdk.Stage {
	return sdk.SampleStage("prototype", "Votes for the labels whose centroids lie nearest, over the whole knowledge.",
		open, sdk.Revision("1"), sdk.Reads(sdk.ColumnPrototypes))
}

func open(_ context.Context, _ sdk.Setup, c config) (sdk.Sampler, error) {
	return voter(c), nil
}

type voter config

func (v voter) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	samples := make([][]sdk.Sample, len(b.Items))
	for i, item := range b.Items {
		if answers := v.vote(item.Prototypes); len(answers) > 0 {
			samples[i] = []sdk.Sample{{Answers: answers}}
		}
	}
	return samples, nil
}

func (v voter) vote(prototypes []sdk.Candidate) []sdk.Answer {
	labels, cosines := make([]string, 0, len(prototypes)), make([]float32, 0, len(prototypes))
	for _, p := range prototypes {
		if !math.IsNaN(float64(p.Dense)) { // sdk.Unscored
			labels, cosines = append(labels, p.Label), append(cosines, p.Dense)
		}
	}
	var votes ballot.Tally
	votes.Grow(len(labels)) // each has one centroid
	for i, weight := range ballot.Softmax(cosines, v.Sharpness) {
		if weight >= least {
			votes.Add(labels[i], weight)
		}
	}
	return votes.Shares()
}
