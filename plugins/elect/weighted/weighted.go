package weighted

import (
	"context"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

type config struct {
	Accuracy map[string]float64 `config:"accuracy" min:"0" max:"1" example:"{ llm = 0.87 }" doc:"The share of items that each voter is right on, by the name of its sample block; half way between chance and 1 if not given. racflow tune measures it."`
}

// Stage describes the election.
func Stage() sdk.Stage {
	return sdk.ElectStage("weighted", "Counts one vote per voter, weighted by the log-odds of its accuracy on a validation file.",
		open, sdk.Revision("1"), sdk.Reads(sdk.ColumnLabels))
}

func open(_ context.Context, setup sdk.Setup, c config) (sdk.Elector, error) {
	return ballot.NewElection(setup.Log, "accuracy", c.Accuracy, c.elect), nil
}

func (c config) elect(samples []sdk.Sample, labels int) sdk.Verdict {
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

func (c config) worth(voter string, labels int) float64 {
	p, ok := c.Accuracy[voter]
	if !ok {
		p = ballot.Unmeasured(labels)
	}
	return ballot.Worth(p, labels)
}
