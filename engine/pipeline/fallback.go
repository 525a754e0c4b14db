package pipeline

import (
	"maps"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/rule"
)

// readFallback reads a fallback as the stage it stands in, with the arguments
// that it changes. A config of the stage holds on for the fallback, except an
// unlabelled one when the fallback uses another plugin; so does keep, except
// when the fallback searches in another mode or reranks by another plugin, which
// gives other scores.
func (l *loader) readFallback(s *Stage, stage, change stageBody, at place) Fallback {
	f := Fallback{Name: change.block.Labels[0]}
	seen := at.scope
	seen.Candidates = seen.Candidates || stage.block.Type == "retrieve"
	defer func(was bool) { l.off = was }(l.off)
	l.off = !s.Enabled
	if f.When = (arguments{l, change.attrs}).rule("when", rule.Fallback, seen); change.attrs["when"] == nil {
		l.errorAt(change.block.DefRange, "Missing argument", `A fallback says for which items it stands in: when = "failed".`)
	}
	merged := stageBody{block: change.block, attrs: maps.Clone(stage.attrs)}
	merged.block = &hcl.Block{Type: stage.block.Type, Labels: stage.block.Labels, DefRange: change.block.DefRange}
	maps.Copy(merged.attrs, change.attrs)
	delete(merged.attrs, "when")
	if attr := change.attrs["whole"]; attr != nil {
		l.errorAt(attr.NameRange, "Misplaced argument", "A fallback searches. Write whole in the retrieve block itself.")
	}
	delete(merged.attrs, "whole")
	for _, c := range stage.configs {
		if len(c.Labels) > 0 || change.attrs["use"] == nil {
			merged.configs = append(merged.configs, c)
		}
	}
	merged.configs = append(merged.configs, change.configs...)
	if merged.prices = change.prices; len(merged.prices) == 0 {
		merged.prices = stage.prices
	}
	f.Stage = l.makeStage(merged, at)
	l.checkCalls(f.Stage, change) // what it did not write itself suited the stage
	if r := f.Stage.Retrieve; r != nil && r.Ranking.Mode != s.Retrieve.Ranking.Mode && change.attrs["keep"] == nil {
		f.Stage.Keep = nil
	}
	if s.Block == "rerank" && change.attrs["use"] != nil && change.attrs["keep"] == nil {
		f.Stage.Keep = nil
	}
	l.checkKeep(f.Stage, merged.attrs)
	return f
}
