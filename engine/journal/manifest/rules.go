package manifest

import (
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/rule"
)

// rulesOf are the rules of a pipeline that decide about items, in file order.
func rulesOf(p *pipeline.Pipeline) (all []Rule) {
	add := func(stage, kind, name string, r *rule.Rule) {
		if r != nil {
			all = append(all, Rule{stage, kind, name, r.Text()})
		}
	}
	of := func(stage string, s *pipeline.Stage) {
		add(stage, outcome.RuleKeep, "", s.Keep)
		add(stage, outcome.RuleAccept, "", s.Accept)
		add(stage, outcome.RuleFlag, "", s.Flag)
	}
	for _, s := range p.Stages {
		if !s.Enabled {
			continue
		}
		stage := s.Block + "." + s.Name
		add(stage, outcome.RuleWhen, "", s.When)
		of(stage, s)
		for _, f := range s.Fallbacks {
			add(stage, outcome.RuleFallback, f.Name, f.When)
			of(stage+", fallback."+f.Name, f.Stage)
		}
	}
	return all
}
