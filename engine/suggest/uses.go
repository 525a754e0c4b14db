package suggest

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/racflow/racflow/engine/grammar"
	"github.com/racflow/racflow/sdk"
)

// reader finds what the variables of a file stand for.
type reader struct {
	file   *File
	stages Stages
}

// named is the variable that an expression is; nil: it is none, or not one alone.
func (r reader) named(e hclsyntax.Expression) *Variable {
	t, ok := e.(*hclsyntax.ScopeTraversalExpr)
	if !ok || len(t.Traversal) != 2 || t.Traversal.RootName() != "var" {
		return nil
	}
	name, ok := t.Traversal[1].(hcl.TraverseAttr)
	if !ok {
		return nil
	}
	return r.file.Variable(name.Name)
}

// block gives a variable the values of the arguments that it stands for.
func (r reader) block(body *hclsyntax.Body, is grammar.Block) {
	var used string
	if a := body.Attributes["use"]; a != nil && is.Kind != "" {
		if v := r.named(a.Expr); v != nil {
			v.add(r.stages.Uses(is.Kind)...)
		}
		used, _ = text(a.Expr)
	}
	for _, a := range is.Arguments {
		r.argument(body, a.Argument)
	}
	for _, b := range body.Blocks {
		if inner, ok := is.Inner(b.Type); ok {
			r.block(b.Body, inner)
			continue
		}
		if b.Type != "config" || is.Kind == "" {
			continue
		}
		use := used
		if len(b.Labels) > 0 {
			use = b.Labels[0]
		}
		if stage, ok := r.stages.Stage(is.Kind, use); ok {
			for _, a := range stage.Arguments {
				r.argument(b.Body, a)
			}
		}
	}
}

func (r reader) argument(body *hclsyntax.Body, a sdk.Argument) {
	given := body.Attributes[a.Name]
	if given == nil {
		return
	}
	v := r.named(given.Expr)
	if v == nil {
		return
	}
	v.add(a.OneOf...)
	if a.Type == sdk.TypeBool {
		v.add("true", "false")
	}
	v.Path = v.Path || a.Type == sdk.TypePath
	v.Model = v.Model || a.Type == sdk.TypePath && a.Name == "model" // what sdk.FindModel takes
}

// compared gives variables the texts that the file compares them with.
func (r reader) compared(body *hclsyntax.Body) {
	hclsyntax.VisitAll(body, func(n hclsyntax.Node) hcl.Diagnostics { //nolint:errcheck // it returns none
		op, ok := n.(*hclsyntax.BinaryOpExpr)
		if !ok || op.Op != hclsyntax.OpEqual && op.Op != hclsyntax.OpNotEqual {
			return nil
		}
		for _, side := range [2][2]hclsyntax.Expression{{op.LHS, op.RHS}, {op.RHS, op.LHS}} {
			if v := r.named(side[0]); v != nil {
				if value, ok := text(side[1]); ok && value != "" {
					v.add(value)
				}
			}
		}
		return nil
	})
}
