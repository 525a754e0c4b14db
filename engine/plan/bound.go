package plan

import (
	"github.com/racflow/racflow/engine/estimate"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// Call is what the calls of a voter would come to for all items of the input.
type Call struct {
	Stage                    *pipeline.Stage
	Voter                    estimate.Voter // of the items that made the dry run
	Items, Requests, Answers int
	Likely                   sdk.Usage
	Limited                  bool    // an answer has a limit; else nobody knows Likely.OutputTokens
	Cost, MostCost           float64 // by the price of the stage; 0: it has none
}

// Calls are those of the voters that made the dry run, in file order.
func (p *Plan) Calls() []Call {
	var all []Call
	f := p.Forecast
	scale := func(n int) int { return int(float64(n)*float64(p.Items)/float64(max(f.Tried, 1)) + .5) }
	for _, s := range p.Pipeline.Stages {
		v, ok := f.Voters[s.Name]
		if !ok || s.Block != "sample" {
			continue
		}
		c := Call{Stage: s, Voter: v, Items: scale(v.Items), Requests: scale(v.Requests), Answers: scale(v.Answers)}
		c.Likely = sdk.Usage{InputTokens: uint64(scale(int(v.Likely.InputTokens))), OutputTokens: uint64(scale(int(v.Likely.OutputTokens)))}
		c.Limited = v.Answers == 0 || c.Likely.OutputTokens > 0
		if s.Price != nil {
			c.Cost = s.Price.Of(c.Likely)
			c.MostCost = s.Price.AtMost(v.Most)
		}
		all = append(all, c)
	}
	return all
}
