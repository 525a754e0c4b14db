package pipeline

import (
	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/grammar"
	"github.com/racflow/racflow/engine/rule"
)

func (l *loader) readPipeline(b *hcl.Block) *Pipeline {
	p := &Pipeline{Name: b.Labels[0], Range: b.DefRange}
	content, diags := b.Body.Content(grammar.Described("pipeline").Schema())
	l.add(diags)
	a := arguments{l, content.Attributes}
	p.Batch = a.int("batch", 0, 1)
	p.Budget, p.Memory = a.budget(), a.size("memory")
	var stages, journals, expects hcl.Blocks
	for _, s := range content.Blocks {
		switch s.Type {
		case "journal":
			journals = append(journals, s)
			continue
		case "expect":
			expects = append(expects, s)
			continue
		case "input":
		default:
			stages = append(stages, s)
			continue
		}
		if p.Input != nil {
			l.errorAt(s.DefRange, "Duplicate block", "A pipeline has one input block; there is one on line %d already.", p.Input.Range.Start.Line)
			continue
		}
		in := l.readSource(s, l.Input, false)
		p.Input = &in
	}
	if p.Input == nil && l.Input != "" {
		p.Input = &Source{ID: "id", Text: "text", Label: "label", Gold: "gold"}
		p.Input.Replace(absolute(l.Input, l.Dir))
		l.mapColumns(p.Input, true)
	}
	p.Journal = l.readJournal(journals)
	at := place{scope: rule.Scope{Vars: l.seen()}}
	for _, s := range l.distinct(stages) {
		p.Stages = append(p.Stages, l.readStage(s, at))
		switch s.Type {
		case "retrieve":
			at.scope.Candidates = true
		case "sample":
			at.scope.Voters = true
		case "elect":
			at.scope.Election = true
		}
	}
	for _, e := range l.distinct(expects) {
		p.Expects = append(p.Expects, l.readExpect(e, at.scope))
	}
	p.countPrompts()
	l.checkBudget(p, content.Attributes)
	if !diags.HasErrors() { // an unknown block may be a misspelled stage
		l.checkStructure(p)
	}
	return p
}
