package elect

import (
	"context"
	"errors"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

type firstConfig struct{}

// First elects the first acceptable answer. Voters are asked in the order of the file, and their samples come in the
// order in which they were drawn. The verdict is the best accepted answer of the first sample that has one. This is
// how retrieval-augmented classification (RAC) decides: it asks one model, and asks again if the answer is none of
// the allowed labels. If the model never gives one, there is no answer. `resamples` of a sample block asks again.
//
// The samples behind the first affect only the agreement: the share of samples with an accepted answer that vote for
// the verdict. If the first accepted answer has no label, it says that none of the labels fits, and the verdict has
// no answer.
//
// First does not decide which answers are acceptable: accept rules do.
func First() sdk.Stage {
	return sdk.ElectStage("first", "Takes the first acceptable answer, in the order of the voters.", openFirst, sdk.Revision("1"))
}

func openFirst(_ context.Context, setup sdk.Setup, _ firstConfig) (sdk.Elector, error) {
	if setup.Labels.Many {
		return ballot.NewElection(nil, "", nil, firstSet), nil
	}
	return ballot.NewElection(nil, "", nil, elect), nil
}

// firstSet takes the labels of the first sample with an acceptable answer. If the sample gives weights, it takes the
// labels with at least one half.
func firstSet(samples []sdk.Sample, _ int) sdk.Verdict {
	for i, s := range samples {
		if _, ok := ballot.Best(s); ok {
			return ballot.VerdictSet(ballot.MeanSet(samples[i:i+1], nil), half)
		}
	}
	return ballot.Verdict(nil)
}

// errOfSets reports rows with several labels to an election that elects one.
var errOfSets = errors.New(`it elects one label, and the rows of the knowledge have sets of labels: write use = "learned", "soft" or "first"`)

func elect(samples []sdk.Sample, _ int) sdk.Verdict {
	var winner []sdk.Answer // one, or none yet
	same, all := 0, 0
	for _, s := range samples {
		label, ok := ballot.Best(s)
		if !ok {
			continue
		}
		all++
		if winner == nil {
			winner = []sdk.Answer{{Label: label}}
		}
		if label == winner[0].Label {
			same++
		}
	}
	if winner != nil {
		winner[0].Weight = float64(same) / float64(all)
	}
	return ballot.Verdict(winner)
}

type majorityConfig struct {
	Weights map[string]float64 `config:"weights" min:"0" max:"1e6" example:"{ llm = 2 }" doc:"How many votes each sample of a voter counts, by the name of its sample block; 1 if not given."`
}

// Majority is the election of RAGE (retrieval-augmented generation and election), Algorithm 1 of the paper. Each
// sample casts one vote for its best accepted answer, and the answer with the most votes wins.
//
// A tie goes to the answer that was voted for first, in the order of the voters in the file and of their samples. So
// a statistical voter above the language models wins ties, as the paper's kNN vote does. Such a voter proposes only
// labels of the knowledge, so there is always an acceptable answer. The agreement is the winner's share of the votes,
// weighted by their voters.
//
// An accepted answer without a label is a vote for none of the labels. If it wins, the verdict has no answer.
//
// Majority ignores the weights inside a sample; elect/soft uses them.
func Majority() sdk.Stage {
	return sdk.ElectStage("majority", "Counts the best accepted answer of every sample; the first voter wins a tie.", openMajority, sdk.Revision("1"))
}

func openMajority(_ context.Context, setup sdk.Setup, c majorityConfig) (sdk.Elector, error) {
	if setup.Labels.Many {
		return nil, errOfSets
	}
	return ballot.NewElection(setup.Log, "weights", c.Weights, func(samples []sdk.Sample, _ int) sdk.Verdict {
		var votes ballot.Tally
		for _, s := range samples {
			if label, ok := ballot.Best(s); ok {
				votes.Add(label, ballot.Weights(c.Weights).Of(s.Voter))
			}
		}
		return ballot.Weighed(votes.Shares(), samples)
	}), nil
}

type softConfig struct {
	Weights map[string]float64 `config:"weights" min:"0" max:"1e6" example:"{ llm = 2 }" doc:"How much each voter's ballot counts, by the name of its sample block; 1 if not given."`
}

// Soft is an election by the mean ballot. It averages the voters' distributions over labels, and the label with the
// greatest share wins. That share is the agreement. This is soft voting, the average rule of Kuncheva, "Combining
// Pattern Classifiers" (2nd ed. 2014, section 5.2). All samples of a language model form one ballot, so asking a
// model more often does not give it more weight; the argument weights can do that.
//
// An accepted answer without a label is a share for none of the labels. If it wins, the verdict has no answer.
//
// Where labels are sets, Soft elects the label with the greatest share, and each label with a share of at least one
// half.
//
// Package ballot computes the mean, also for the engine. So margin and agreement in rules refer to the same numbers.
// A tie goes to the label that stands first in the order of the voters in the file.
func Soft() sdk.Stage {
	return sdk.ElectStage("soft", "Averages the voters' distributions over the accepted answers; the greatest share wins.", openSoft, sdk.Revision("1"))
}

func openSoft(_ context.Context, setup sdk.Setup, c softConfig) (sdk.Elector, error) {
	if setup.Labels.Many {
		return ballot.NewElection(setup.Log, "weights", c.Weights, func(samples []sdk.Sample, _ int) sdk.Verdict {
			return ballot.VerdictSet(ballot.MeanSet(samples, c.Weights), half)
		}), nil
	}
	return ballot.NewElection(setup.Log, "weights", c.Weights, func(samples []sdk.Sample, _ int) sdk.Verdict {
		return ballot.Weighed(ballot.Mean(samples, c.Weights), samples)
	}), nil
}

type weightedConfig struct {
	Accuracy map[string]float64 `config:"accuracy" min:"0" max:"1" example:"{ llm = 0.87 }" doc:"The share of items that each voter is right on, by the name of its sample block; half way between chance and 1 if not given. racflow tune measures it."`
}

// Weighted is a majority election that weights each voter by its accuracy on a file with known labels. `racflow tune`
// measures the accuracies and writes them into a file of variables.
//
// Each voter has one vote, for the best accepted answer of its sample. If a model was asked n times, its vote is
// divided evenly among the best accepted answers of its samples, since n answers of one model are not independent. A
// vote's weight is the log-odds of the voter's accuracy, see ballot.Worth, with the number of labels of the
// knowledge, or 2 where the pipeline has none. A voter without a measured accuracy is assumed to be half way between
// chance and certainty.
//
// The greatest weight wins; a tie goes to the answer that was voted for first, in the order of the voters in the
// file. The agreement is the winner's share of the weight. An accepted answer without a label is a vote for none of
// the labels. If no voter with an acceptable answer is better than chance, the verdict has no answer.
//
// Weighted measures nothing and ignores the weights inside a sample; elect/soft uses them.
func Weighted() sdk.Stage {
	return sdk.ElectStage("weighted", "Counts one vote per voter, weighted by the log-odds of its accuracy on a validation file.",
		openWeighted, sdk.Revision("1"), sdk.Reads(sdk.ColumnLabels))
}

func openWeighted(_ context.Context, setup sdk.Setup, c weightedConfig) (sdk.Elector, error) {
	if setup.Labels.Many {
		return nil, errOfSets
	}
	return ballot.NewElection(setup.Log, "accuracy", c.Accuracy, c.elect), nil
}

func (c weightedConfig) elect(samples []sdk.Sample, labels int) sdk.Verdict {
	counted := map[string]int{} // samples with a vote, by voter
	for _, s := range samples {
		if _, ok := ballot.Best(s); ok {
			counted[s.Voter]++
		}
	}
	var votes ballot.Tally
	for _, s := range samples {
		if label, ok := ballot.Best(s); ok {
			votes.Add(label, c.worth(s.Voter, labels)/float64(counted[s.Voter]))
		}
	}
	shares := votes.Shares()
	if len(shares) == 0 && len(counted) > 0 {
		return sdk.Verdict{Reason: "no voter that gave an acceptable answer is better than chance"}
	}
	return ballot.Verdict(shares)
}

func (c weightedConfig) worth(voter string, labels int) float64 {
	p, ok := c.Accuracy[voter]
	if !ok {
		p = ballot.Unmeasured(labels)
	}
	return ballot.Worth(p, labels)
}
