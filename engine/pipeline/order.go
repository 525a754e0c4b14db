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
// Candidates come from the nearest retrieve or rerank stage above, what else is
// known of the knowledge from the nearest retrieve stage, prompts from the
// nearest prompt stage, samples from all sample stages.
func (p *Pipeline) Needs(i int) []int {
	s := p.Stages[i]
	reads := s.reads()
	var needs []int
	switch {
	case reads&candidates != 0 || s.ruleReadsAbove("candidates", "candidate_labels"):
		needs = append(needs, p.above(i, 1, "retrieve", "rerank")...)
	case reads&fromSearch != 0 || s.ruleReadsAbove("labels"):
		needs = append(needs, p.above(i, 1, "retrieve")...)
	}
	if reads.Has(sdk.ColumnPrompts) {
		needs = append(needs, p.above(i, 1, "prompt")...)
	}
	if s.Block == "elect" || reads.Has(sdk.ColumnSamples) || s.ruleReads("margin", "agreement", "votes") {
		needs = append(needs, p.above(i, i, "sample")...)
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
		reads := s.Enabled && s.reads().Has(sdk.ColumnPrompts)
		if s.Enabled && s.Block == "prompt" {
			// Its prompts take the place of these. Where nobody reads those either,
			// nobody reads what stands above them.
			return reads && p.Used(j)
		}
		if reads {
			return true
		}
	}
	return false
}

// above returns up to n enabled stages of these types of blocks that stand above
// stage i, the nearest first.
func (p *Pipeline) above(i, n int, blocks ...string) []int {
	var found []int
	for j := i - 1; j >= 0 && len(found) < n; j-- {
		if s := p.Stages[j]; slices.Contains(blocks, s.Block) && s.Enabled && p.Used(j) {
			found = append(found, j)
		}
	}
	return found
}

// ruleReadsAbove reports whether a rule reads names that the search above wrote.
// The keep of a retrieve stage, and what its fallbacks ask, is about its own
// candidates.
func (s *Stage) ruleReadsAbove(names ...string) bool {
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
