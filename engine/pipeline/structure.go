package pipeline

import (
	"fmt"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// fromSearch are the columns that a retrieve stage fills, and candidates those
// that a rerank stage fills anew.
var (
	candidates = sdk.Of(sdk.ColumnCandidates, sdk.ColumnCandidateTexts)
	fromSearch = candidates | sdk.Of(sdk.ColumnVector, sdk.ColumnPrototypes, sdk.ColumnRandom, sdk.ColumnLabels)
)

// checkStructure checks that every enabled stage finds what it reads, and that
// the pipeline leads to something.
func (l *loader) checkStructure(p *Pipeline) {
	l.checkStandardInput(p)
	var elect, retrieve *Stage
	retrieves, prompts, voters := 0, 0, 0
	for _, s := range p.Stages {
		if !s.Enabled {
			continue
		}
		reads := s.reads()
		if reads&fromSearch != 0 && retrieves == 0 {
			l.errorAt(s.UseRange, "Nothing to read", "%s reads candidates or labels, and no retrieve stage stands above (or none is enabled). Put one above: retrieve \"neighbours\" { from = knowledge.NAME }.", s.Use)
		}
		if reads.Has(sdk.ColumnPrompts) && prompts == 0 {
			l.errorAt(s.UseRange, "Nothing to read", "%s reads prompts, and no prompt stage stands above (or none is enabled). Put one above: prompt \"shots\" { use = ... }.", s.Use)
		}
		l.checkFits(s, retrieves > 0)
		switch s.Block {
		case "retrieve":
			retrieves++
			retrieve = s
		case "prompt":
			prompts++
		case "sample":
			voters++
			l.checkWhole(s, retrieve)
		case "elect":
			if voters == 0 {
				l.errorAt(s.Range, "Nothing to read", "No sample stage stands above this election (or none is enabled), so there are no votes to count.")
			}
			if elect != nil {
				l.errorAt(s.Range, "Duplicate election", "A pipeline has one election; the one on line %d is enabled too.", elect.Range.Start.Line)
			}
			elect = s
		}
	}
	if retrieves == 0 && elect == nil {
		l.errorAt(p.Range, "Empty pipeline", "A pipeline needs an enabled retrieve or elect stage, or nothing comes out of it.")
	}
}

func (l *loader) checkStandardInput(p *Pipeline) {
	var stdin []string
	if p.Input != nil && p.Input.Path == "-" {
		stdin = append(stdin, "the input")
	}
	for _, k := range p.Knowledge() {
		for _, s := range k.Sources {
			if s.Path == "-" {
				stdin = append(stdin, fmt.Sprintf("knowledge %q", k.Name))
			}
		}
	}
	if len(stdin) > 1 {
		l.errorAt(p.Range, "Standard input is read twice", "Only one of %s can read \"-\". Give the others a file.", strings.Join(stdin, " and "))
	}
}

// checkFits checks that a stage which may have to learn finds the rows for that.
func (l *loader) checkFits(s *Stage, retrieve bool) {
	for _, f := range append([]Fallback{{Stage: s}}, s.Fallbacks...) {
		switch s := f.Stage; {
		case !s.Info.Fits:
		case s.Info.FitReads.Has(sdk.ColumnSamples) && s.Kind != sdk.KindElect:
			l.errorAt(s.UseRange, "Unusable stage", "%s wants to learn from the votes of voters, which only an election can. Use another %s stage.", s.Use, s.Kind)
		case !retrieve:
			l.errorAt(s.UseRange, "Nothing to learn from", "%s learns from the rows of a knowledge, and no retrieve stage stands above (or none is enabled). Put one above: retrieve \"neighbours\" { from = knowledge.NAME }.", s.Use)
		}
	}
}

// reads are the columns that a stage or one of its fallbacks declares.
func (s *Stage) reads() sdk.Columns {
	all := s.Info.Reads
	for _, f := range s.Fallbacks {
		all |= f.Stage.Info.Reads
	}
	return all
}
