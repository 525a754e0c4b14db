package plan

import (
	"github.com/racflow/racflow/engine/estimate"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// Call is what the calls of a voter would come to for all items of the input.
type Call struct {
	Stage *pipeline.Stage
	Voter estimate.Voter // of the items that made the dry run
	Items int
	// Forecast is of all items. Its Most is known only where all made the dry run.
	sdk.Forecast
	// Cost is what is expected, without what a service has in its own cache, and MostCost the
	// most, by the price of the stage; 0: it has none.
	Cost, MostCost float64
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
		c := Call{Stage: s, Voter: v, Items: scale(v.Items), Forecast: v.Forecast}
		c.Requests, c.Answers, c.Cached = scale(v.Requests), scale(v.Answers), scale(v.Cached)
		for _, n := range []*uint64{&c.Likely.InputTokens, &c.Likely.CachedTokens, &c.Likely.OutputTokens} {
			*n = uint64(scale(int(*n)))
		}
		if price := s.CallPrice(); price != nil {
			c.Cost = price.Expected(c.Likely)
			c.MostCost = price.AtMost(v.Most)
		}
		all = append(all, c)
	}
	return all
}
