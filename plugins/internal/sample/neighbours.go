package sample

import (
	"context"
	"math"
	"slices"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

// This file is a voter: the weighted vote of an item's k nearest labelled neighbours (kNN).
//
// The weight of a label is the sum over its neighbours of
//
//	exp(sharpness * score) / sum over the k neighbours of exp(sharpness * score)
//
// where score is the candidate's score after retrieval. So the vote depends on the search and the reranking that
// precede it. With sharpness 0 every neighbour has one vote, which is plain kNN (Cover and Hart, "Nearest neighbor
// pattern classification", 1967). Weighting by closeness is Dudani, "The distance-weighted k-nearest-neighbor rule",
// 1976, with the exponential kernel of attention and matching networks (Vinyals et al., 2016).
//
// The defaults, 30 neighbours and sharpness 15, serve CLINC150, HWU64 and DBpedia classes alike with scores between 0
// and 1 (weighted fusion, or cosine). Reciprocal-rank scores are far smaller and need a far greater sharpness.
//
// The distance of a ballot is one minus the fifth best cosine among the candidates.
//
// The voter does not search: it votes on the given candidates, and abstains if none has a label.

type neighboursConfig struct {
	K         int     `config:"k" default:"30" min:"1" doc:"How many of the nearest candidates with a label vote."`
	Sharpness float64 `config:"sharpness" default:"15" min:"0" max:"1000" doc:"How much more a closer neighbour counts: votes weigh exp(sharpness * score). 0 gives each one vote."`
}

// Neighbours describes the voter.
func Neighbours() sdk.Stage {
	return sdk.SampleStage("neighbours", "Votes by the labels of the nearest neighbours, closer ones counting more (weighted kNN).",
		openNeighbours, sdk.Revision("2"), sdk.Reads(sdk.ColumnCandidates))
}

func openNeighbours(_ context.Context, _ sdk.Setup, c neighboursConfig) (sdk.Sampler, error) {
	return neighboursVoter(c), nil
}

type neighboursVoter neighboursConfig

func (v neighboursVoter) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	samples := make([][]sdk.Sample, len(b.Items))
	for i, item := range b.Items {
		if answers := v.vote(item.Candidates); len(answers) > 0 {
			samples[i] = []sdk.Sample{{Answers: answers, Distance: distance(item.Candidates)}}
		}
	}
	return samples, nil
}

// near is the rank of the neighbour whose cosine gives a text's distance.
const near = 5

// distance returns one minus the near-th best cosine of the candidates, or the last one if there are fewer. 0: no
// candidate has a cosine.
func distance(candidates []sdk.Candidate) float64 {
	var cosines []float64
	for i := range candidates {
		if c := float64(candidates[i].Dense); !math.IsNaN(c) { // sdk.Unscored
			cosines = append(cosines, c)
		}
	}
	if len(cosines) == 0 {
		return 0
	}
	slices.Sort(cosines)
	cosine := cosines[max(len(cosines)-near, 0)]
	return min(max(1-cosine, 1e-3), 1) // never 0, which would mean unknown
}

// vote returns the labels with their shares, best first. Labels with equal shares come in the order of their nearest
// candidates.
func (v neighboursVoter) vote(candidates []sdk.Candidate) []sdk.Answer {
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
