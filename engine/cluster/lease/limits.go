package lease

import (
	"cmp"

	"github.com/racflow/racflow/engine/grammar"
	"github.com/racflow/racflow/engine/pipeline"
)

// Limits are what the calls of a run must keep to, wherever they are made: what a keeper has to
// know. They are written as JSON into the definition of a run.
type Limits struct {
	Blocks []Limit `json:"blocks,omitempty"` // limit blocks that stages of the run name, each once
	// Endpoint is how many calls may be under way at each endpoint whose stages name no limit block.
	Endpoint int    `json:"endpoint"`
	Budget   Amount `json:"budget,omitzero"` // 0: any
	// Spent is what counts towards the budget already: what building the knowledge took, say.
	Spent Amount `json:"spent,omitzero"`
	// Part is that of the run, from 1, and 0 is 1: what an earlier one spent does not count.
	Part int `json:"part,omitempty"`
}

// Limit is a limit block.
type Limit struct {
	Name        string `json:"name"`
	Concurrency int    `json:"concurrency"`        // calls at a time
	Requests    int    `json:"requests,omitempty"` // per minute; 0: any number
	Tokens      int    `json:"tokens,omitempty"`   // per minute, in and out; 0: any number
}

// LimitsOf returns the limits of a pipeline's calls. What the budget leaves open is the pipeline's
// own. Spent and Part are for the caller to set.
func LimitsOf(p *pipeline.Pipeline, budget pipeline.Budget) Limits {
	limits := Limits{Endpoint: grammar.DefaultConcurrency, Budget: Amount{
		Cost: cmp.Or(budget.Cost, p.Budget.Cost), Tokens: cmp.Or(budget.Tokens, p.Budget.Tokens),
	}}
	seen := map[string]bool{}
	add := func(stages []*pipeline.Stage) {
		for _, s := range stages {
			if l := s.Limit; s.Enabled && l != nil && !seen[l.Name] {
				seen[l.Name] = true
				limits.Blocks = append(limits.Blocks, Limit{Name: l.Name, Concurrency: l.Concurrency, Requests: l.Requests, Tokens: l.Tokens})
			}
		}
	}
	add(p.Stages)
	for _, k := range p.Knowledge() {
		add(k.Stages())
	}
	return limits
}
