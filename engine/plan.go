package engine

import (
	"context"

	"github.com/racflow/racflow/engine/knowledge"
	"github.com/racflow/racflow/engine/report"
	"github.com/racflow/racflow/engine/run"
	"github.com/racflow/racflow/engine/source"
)

// Plan finds out what a run would build and call, and what that would cost. It asks
// no service. Up to 500 items go through the other stages, for which knowledge that
// is embedded on this machine is brought up to date.
func (p *Pipeline) Plan(ctx context.Context) (*report.Plan, error) {
	plan := &report.Plan{File: p.file, Pipeline: p.chosen, Items: -1}
	if p.InputPath() != "-" { // which is left for the run
		plan.Items = 0
		err := p.Look(func(row source.Row) bool {
			if plan.Items++; row.Err != nil {
				plan.Faults++
			}
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	err := p.planKnowledge(ctx, plan)
	if err == nil {
		plan.Forecast, err = p.rehearse(ctx, plan)
	}
	if err != nil {
		return nil, p.explain(err)
	}
	return plan, nil
}

// planKnowledge compares the knowledge that the pipeline searches with its
// sources. Where a service embeds, it is not asked: a source is only counted.
func (p *Pipeline) planKnowledge(ctx context.Context, plan *report.Plan) error {
	plan.Texts = map[string]report.Texts{}
	for _, block := range p.chosen.Knowledge() {
		r := knowledge.Report{Name: block.Name, Embedder: block.Embed.Use, Store: block.Store.Use}
		switch {
		case block.Source.Path == "-":
		case block.Embed.Info.Network:
			var err error
			if r, plan.Texts[block.Name], err = p.textsOf(ctx, block); err != nil {
				return err
			}
		default:
			k, err := knowledge.Open(ctx, block, run.Stages(block, p.launch), knowledge.Options{Plan: true})
			if err != nil {
				return err
			}
			r = k.Report
		}
		plan.Knowledge = append(plan.Knowledge, r)
	}
	return nil
}
