package run

import (
	"fmt"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// checkLabels refuses a knowledge without labels where a stage cannot work without
// them. Voters on prompts can: they may answer questions from passages.
func (r *Run) checkLabels(block *pipeline.Knowledge) error {
	if len(r.voters) == 0 {
		return nil
	}
	for _, s := range r.stages {
		if s == nil || s.in.retrieve < 0 || r.stages[s.in.retrieve].Retrieve.From != block {
			continue
		}
		var why string
		switch {
		case s.Info.Reads.Has(sdk.ColumnLabels):
			why = fmt.Sprintf("so %s (%s) has none to choose from", s, s.Use)
		case s.Kind == sdk.KindSample && !s.Info.Reads.Has(sdk.ColumnPrompts):
			why = fmt.Sprintf("so there is nothing to vote for, which %s (%s) does", s, s.Use)
		case s.Accept.Reads("labels") || s.Accept.Reads("candidate_labels"):
			why = fmt.Sprintf("so the accept rule of %s takes no answer", s)
		default:
			continue
		}
		from := "row of " + block.Source.Path
		advice := `name the column that holds it with label = "..." in the source block, or`
		if block.Source.Documents != nil {
			from, advice = "document", "let it read rows with labels, or"
		}
		return fmt.Errorf(`knowledge %q: no %s has a label, %s; %s have questions answered from passages, by a prompt with use = "answer" and voters that read it`,
			block.Name, from, why, advice)
	}
	return nil
}
