package pipeline

import (
	"slices"

	"github.com/racflow/racflow/engine/rule"
	"github.com/racflow/racflow/sdk"
)

// Needs returns the stages above stage i that it must wait for, in file order:
// those that write what it, its rules or its fallbacks read. Stages that are
// off or not Used are not among them.
//
// Candidates and labels come from the nearest retrieve stage above, prompts
// from the nearest prompt stage, samples from all sample stages.
func (p *Pipeline) Needs(i int) []int {
	s := p.Stages[i]
	reads := s.reads()
	var needs []int
	if reads&fromSearch != 0 || s.ruleReadsSearch() {
		needs = append(needs, p.above(i, "retrieve", 1)...)
	}
	if reads.Has(sdk.ColumnPrompts) {
		needs = append(needs, p.above(i, "prompt", 1)...)
	}
	if s.Block == "elect" || reads.Has(sdk.ColumnSamples) || s.ruleReads("margin", "agreement", "votes") {
		needs = append(needs, p.above(i, "sample", i)...)
	}
	slices.Sort(needs)
	return needs
}

// Used reports whether stage i does anything for the pipeline: it is false for
// an enabled prompt stage whose prompts no enabled stage below reads.
func (p *Pipeline) Used(i int) bool {
	if s := p.Stages[i]; s.Block != "prompt" || !s.Enabled {
		return true
	}
	for j := i + 1; j < len(p.Stages); j++ {
		s := p.Stages[j]
		if s.Enabled && s.reads().Has(sdk.ColumnPrompts) && p.Used(j) {
			return true
		}
		if s.Enabled && s.Block == "prompt" && p.Used(j) {
			return false // its prompts take the place of these
		}
	}
	return false
}

// above returns up to n enabled stages of a block's type that stand above
// stage i, the nearest first.
func (p *Pipeline) above(i int, block string, n int) []int {
	var found []int
	for j := i - 1; j >= 0 && len(found) < n; j-- {
		if s := p.Stages[j]; s.Block == block && s.Enabled && p.Used(j) {
			found = append(found, j)
		}
	}
	return found
}

// ruleReadsSearch reports whether a rule reads what the retrieve stage above
// found. The keep of a retrieve stage, and what its fallbacks ask, is about
// its own candidates.
func (s *Stage) ruleReadsSearch() bool {
	names := []string{"candidates", "candidate_labels", "labels"}
	if s.Block == "retrieve" {
		return slices.ContainsFunc(names, s.When.Reads)
	}
	return s.ruleReads(names...)
}

func (s *Stage) ruleReads(names ...string) bool {
	rules := []*rule.Rule{s.When, s.Keep, s.Accept, s.Flag}
	for _, f := range s.Fallbacks {
		rules = append(rules, f.When, f.Stage.Keep, f.Stage.Accept, f.Stage.Flag)
	}
	return slices.ContainsFunc(rules, func(r *rule.Rule) bool { return slices.ContainsFunc(names, r.Reads) })
}
