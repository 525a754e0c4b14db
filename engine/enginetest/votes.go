package enginetest

import (
	"context"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

// voter votes for the labels of candidates, those with a higher score counting more.
type voter func(sdk.Item) (candidates []sdk.Candidate, score func(sdk.Candidate) float32)

func (v voter) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	samples := make([][]sdk.Sample, len(b.Items))
	for i, item := range b.Items {
		candidates, score := v(item)
		scores := make([]float32, len(candidates))
		for j, c := range candidates {
			scores[j] = score(c)
		}
		var votes ballot.Tally
		for j, weight := range ballot.Softmax(scores, 15) {
			if candidates[j].Label != "" {
				votes.Add(candidates[j].Label, weight)
			}
		}
		if answers := votes.Shares(); len(answers) > 0 {
			samples[i] = []sdk.Sample{{Answers: answers}}
		}
	}
	return samples, nil
}

func voterStage(name, doc string, v voter, reads sdk.Column) sdk.Stage {
	return sdk.SampleStage(name, doc, func(context.Context, sdk.Setup, none) (sdk.Sampler, error) { return v, nil }, sdk.Reads(reads))
}

// Neighbours is a voter: all candidates by their scores.
func Neighbours() sdk.Stage {
	return voterStage("neighbours", "Votes by the labels of the candidates.", func(item sdk.Item) ([]sdk.Candidate, func(sdk.Candidate) float32) {
		return item.Candidates, func(c sdk.Candidate) float32 { return c.Score }
	}, sdk.ColumnCandidates)
}

// Prototype is a voter: all centroids of labels by their cosines.
func Prototype() sdk.Stage {
	return voterStage("prototype", "Votes by the centroids of labels.", func(item sdk.Item) ([]sdk.Candidate, func(sdk.Candidate) float32) {
		return item.Prototypes, func(c sdk.Candidate) float32 { return c.Dense }
	}, sdk.ColumnPrototypes)
}

type weights struct {
	Weights map[string]float64 `config:"weights" doc:"What a voter counts, by the name of its block."`
}

// election makes verdicts of the shares that labels have of the votes on an item.
type election func([]sdk.Sample) []sdk.Answer

func (e election) Elect(_ context.Context, b sdk.Batch) ([]sdk.Verdict, error) {
	verdicts := make([]sdk.Verdict, len(b.Items))
	for i, item := range b.Items {
		verdicts[i] = ballot.Weighed(e(item.Samples), item.Samples)
	}
	return verdicts, nil
}

// Majority is an election: the best accepted answer of each sample is a vote.
func Majority() sdk.Stage {
	return sdk.ElectStage("majority", "Counts the best answers.", func(_ context.Context, _ sdk.Setup, c weights) (sdk.Elector, error) {
		return election(func(samples []sdk.Sample) []sdk.Answer {
			var votes ballot.Tally
			for _, s := range samples {
				if label, ok := ballot.Best(s); ok {
					votes.Add(label, ballot.Weights(c.Weights).Of(s.Voter))
				}
			}
			return votes.Shares()
		}), nil
	})
}

// Soft is an election: the mean of the voters' distributions.
func Soft() sdk.Stage {
	return sdk.ElectStage("soft", "Averages the distributions.", func(_ context.Context, _ sdk.Setup, c weights) (sdk.Elector, error) {
		return election(func(samples []sdk.Sample) []sdk.Answer { return ballot.Mean(samples, c.Weights) }), nil
	})
}

// First is an election: the first accepted answer, and how many of them are like it.
func First() sdk.Stage {
	return sdk.ElectStage("first", "Takes the first accepted answer.", func(context.Context, sdk.Setup, none) (sdk.Elector, error) {
		return election(func(samples []sdk.Sample) []sdk.Answer {
			var votes ballot.Tally
			for _, s := range samples {
				if label, ok := ballot.Best(s); ok {
					votes.Add(label, 1)
				}
			}
			for _, s := range samples {
				label, ok := ballot.Best(s)
				for _, share := range votes.Shares() {
					if ok && share.Label == label {
						return []sdk.Answer{share}
					}
				}
			}
			return nil
		}), nil
	})
}

type accuracies struct {
	Accuracy map[string]float64 `config:"accuracy" doc:"How often a voter is right, by the name of its block."`
}

// weighing is an election in which a voter counts by how often it is right.
type weighing map[string]float64

func (w weighing) Elect(_ context.Context, b sdk.Batch) ([]sdk.Verdict, error) {
	verdicts := make([]sdk.Verdict, len(b.Items))
	for i, item := range b.Items {
		counted := map[string]float64{}
		for _, s := range item.Samples {
			counted[s.Voter]++
		}
		var votes ballot.Tally
		for _, s := range item.Samples {
			p, ok := w[s.Voter]
			if !ok {
				p = ballot.Unmeasured(len(b.Labels))
			}
			if label, ok := ballot.Best(s); ok {
				votes.Add(label, ballot.Worth(p, len(b.Labels))/counted[s.Voter])
			}
		}
		verdicts[i] = ballot.Verdict(votes.Shares())
	}
	return verdicts, nil
}

// Weighted is an election: each voter counts by its accuracy.
func Weighted() sdk.Stage {
	return sdk.ElectStage("weighted", "Counts voters by their accuracies.", func(_ context.Context, _ sdk.Setup, c accuracies) (sdk.Elector, error) {
		return weighing(c.Accuracy), nil
	}, sdk.Reads(sdk.ColumnLabels))
}
