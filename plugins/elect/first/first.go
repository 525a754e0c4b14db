package first

import (
	"context"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

type config struct{}

// Stage describes the election.
func Stage() sdk.Stage {
	return sdk.ElectStage("first", "Takes the first acceptable answer, in the order of the voters.", open, sdk.Revision("1"))
}

func open(context.Context, sdk.Setup, config) (sdk.Elector, error) {
	return ballot.NewElection(nil, "", nil, elect), nil
}

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
