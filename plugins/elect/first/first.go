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

func open(context.Context, sdk.Setup, config) (sdk.Elector, error) { return election{}, nil }

type election struct{}

func (election) Elect(_ context.Context, b sdk.Batch) ([]sdk.Verdict, error) {
	verdicts := make([]sdk.Verdict, len(b.Items))
	for i, item := range b.Items {
		verdicts[i] = elect(item.Samples)
	}
	return verdicts, nil
}

func elect(samples []sdk.Sample) sdk.Verdict {
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
