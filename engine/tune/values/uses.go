package values

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/racflow/racflow/engine/grammar"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// use is an argument of a stage that the file takes from a variable, as it is.
type use struct {
	variable string
	stage    *pipeline.Stage
	argument sdk.Argument
}

// usesOf returns the arguments of a pipeline's enabled stages that are variables, in file
// order.
func usesOf(f *pipeline.File, p *pipeline.Pipeline) []use {
	var all []use
	for _, s := range p.Stages {
		body := bodyOf(f, p, s)
		if !s.Enabled || body == nil {
			continue
		}
		block := grammar.Described("pipeline", s.Block)
		for _, a := range block.Arguments {
			if name := variableOf(body, a.Name); name != "" {
				all = append(all, use{name, s, a.Argument})
			}
		}
		for _, config := range body.Blocks {
			if config.Type != "config" || len(config.Labels) > 0 && config.Labels[0] != s.Use {
				continue
			}
			for _, a := range s.Info.Arguments {
				if name := variableOf(config.Body, a.Name); name != "" {
					all = append(all, use{name, s, a})
				}
			}
		}
	}
	return all
}

// bodyOf is a stage as it is written; nil: it is not to be found.
func bodyOf(f *pipeline.File, p *pipeline.Pipeline, s *pipeline.Stage) *hclsyntax.Body {
	src := f.Sources[f.Path]
	if src == nil {
		return nil
	}
	file, ok := src.Body.(*hclsyntax.Body)
	if !ok {
		return nil
	}
	for _, b := range file.Blocks {
		if b.Type != "pipeline" || !slices.Equal(b.Labels, []string{p.Name}) {
			continue
		}
		for _, inner := range b.Body.Blocks {
			if inner.Type == s.Block && slices.Equal(inner.Labels, []string{s.Name}) {
				return inner.Body
			}
		}
	}
	return nil
}

// variableOf is the variable that an argument is, if it is nothing else.
func variableOf(body *hclsyntax.Body, argument string) string {
	a := body.Attributes[argument]
	if a == nil {
		return ""
	}
	e, ok := a.Expr.(*hclsyntax.ScopeTraversalExpr)
	if !ok || len(e.Traversal) != 2 || e.Traversal.RootName() != "var" {
		return ""
	}
	step, ok := e.Traversal[1].(hcl.TraverseAttr)
	if !ok {
		return ""
	}
	return step.Name
}
