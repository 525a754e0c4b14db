package plan

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/sdk"
)

// own is how many of a pipeline's own prompts are asked to see how its answers are: enough for a
// first mean, few enough to cost little.
const own = 3

// remember keeps the first items that reached a voter.
func (v *VoterAsked) remember(item sdk.Item) {
	at, _ := slices.BinarySearchFunc(v.first, item, func(a, b sdk.Item) int {
		if before(a.ID, b.ID) {
			return -1
		}
		return 1
	})
	if at < own {
		v.first = slices.Insert(v.first, at, item)
		v.first = v.first[:min(len(v.first), own)]
	}
}

// Single returns the stage of a as it asks by single calls.
func (a Asking) Single() *pipeline.Stage {
	s := *a.Stage
	var config map[string]any
	if !s.Gathers() || json.Unmarshal(s.Config.Open, &config) != nil {
		return &s
	}
	config[s.Info.PendsIf] = false
	s.Config.Open, _ = json.Marshal(config) // it was JSON
	return &s
}

// AskOwn asks a stage about the first items that reached it in the dry run, or about the first
// passages that it has yet to enrich, and returns how many those are. opened is Asking.Single. The
// stage keeps what the replies show of the model, and the response cache has the answers for a run.
func (p *Plan) AskOwn(ctx context.Context, a Asking, opened any) (n int, err error) {
	switch o := opened.(type) {
	case sdk.Sampler:
		var items []sdk.Item
		if p.Forecast != nil && slices.Contains(p.Pipeline.Stages, a.Stage) {
			items = p.Forecast.Voters[a.Stage.Name].first
		}
		if n = len(items); n > 0 {
			_, err = o.Sample(ctx, sdk.Batch{Items: items})
		}
	case sdk.Enricher:
		for _, k := range p.Knowledge {
			for _, asks := range k.Asks {
				if asks.Stage == a.Stage && len(asks.First) > 0 {
					n = len(asks.First)
					_, err = o.Enrich(ctx, asks.First)
				}
			}
		}
	}
	if errors.As(err, new(sdk.RowErrors)) { // the others show enough
		err = nil
	}
	return n, err
}
