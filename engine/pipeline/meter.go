package pipeline

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// metered is an expression whose value is counted before anything is made of
// it. Where all that an expression is made of is metered, so that the sum is
// bounded, it can be evaluated: a template is not longer than its parts, and
// the functions that make more of less are bounded themselves; see bounded.
type metered struct {
	hclsyntax.Expression
	*loader
	number bool // it may be read as a number
	unify  bool // its elements may be converted to one type
}

// Value implements hclsyntax.Expression.
func (m *metered) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	defer m.busy(m.Expression)()
	m.spend(m.Expression, overhead)
	v, diags := m.Expression.Value(ctx)
	m.spend(m.Expression, overhead*10*len(diags))
	m.spend(m.Expression, weigh(v, m.left))
	if m.unify {
		_, n := comparisons(v.Type())
		m.spend(m.Expression, n)
	}
	if m.number {
		m.spend(m.Expression, weighNumber(text(v)))
	}
	return v, diags
}

// meter returns an expression that evaluates to the same, with the expression
// itself and all that it is made of metered.
func (l *loader) meter(e hclsyntax.Expression) *metered {
	l.spend(e, overhead)
	return &metered{Expression: l.inside(e), loader: l}
}

// inside meters what an expression is made of, but not the expression itself:
// looking up an element costs nothing, however large what it is looked up in.
func (l *loader) inside(e hclsyntax.Expression) hclsyntax.Expression {
	switch e := e.(type) {
	case *hclsyntax.TemplateExpr:
		if e.IsStringLiteral() {
			return e
		}
		return &hclsyntax.TemplateExpr{Parts: l.meterAll(e.Parts), SrcRange: e.SrcRange}
	case *hclsyntax.TemplateWrapExpr:
		return &hclsyntax.TemplateWrapExpr{Wrapped: l.inside(e.Wrapped), SrcRange: e.SrcRange}
	case *hclsyntax.TemplateJoinExpr:
		return &hclsyntax.TemplateJoinExpr{Tuple: l.inside(e.Tuple)}
	case *hclsyntax.ParenthesesExpr:
		return &hclsyntax.ParenthesesExpr{Expression: l.inside(e.Expression), SrcRange: e.SrcRange}
	case *hclsyntax.ScopeTraversalExpr:
		l.checkKeys(e, e.Traversal)
	case *hclsyntax.RelativeTraversalExpr:
		l.checkKeys(e, e.Traversal)
		return &hclsyntax.RelativeTraversalExpr{Source: l.inside(e.Source), Traversal: e.Traversal, SrcRange: e.SrcRange}
	case *hclsyntax.IndexExpr:
		c := *e
		key := l.meter(e.Key)
		key.number = true
		c.Collection, c.Key = l.inside(e.Collection), key
		return &c
	case *hclsyntax.SplatExpr:
		c := *e
		c.Source, c.Each = l.inside(e.Source), l.meter(e.Each)
		return &c
	case *hclsyntax.FunctionCallExpr:
		c := *e
		c.Args = l.meterArguments(e)
		return &c
	case *hclsyntax.ConditionalExpr:
		c := *e
		yes, no := l.meter(e.TrueResult), l.meter(e.FalseResult)
		yes.unify, no.unify = true, true
		c.Condition, c.TrueResult, c.FalseResult = l.meter(e.Condition), yes, no
		return &c
	case *hclsyntax.BinaryOpExpr:
		c := *e
		left, right := l.meter(e.LHS), l.meter(e.RHS)
		left.number = e.Op.Impl.Params()[0].Type == cty.Number
		right.number = left.number
		c.LHS, c.RHS = left, right
		return &c
	case *hclsyntax.UnaryOpExpr:
		c := *e
		c.Val = l.meter(e.Val)
		return &c
	case *hclsyntax.TupleConsExpr:
		c := *e
		c.Exprs = l.meterAll(e.Exprs)
		return &c
	case *hclsyntax.ObjectConsExpr:
		c := *e
		c.Items = make([]hclsyntax.ObjectConsItem, len(e.Items))
		for i, item := range e.Items {
			c.Items[i] = hclsyntax.ObjectConsItem{KeyExpr: l.meter(item.KeyExpr), ValueExpr: l.meter(item.ValueExpr)}
		}
		return &c
	case *hclsyntax.ObjectConsKeyExpr:
		return &hclsyntax.ObjectConsKeyExpr{Wrapped: l.inside(e.Wrapped), ForceNonLiteral: e.ForceNonLiteral}
	case *hclsyntax.ForExpr:
		c := *e
		c.CollExpr, c.ValExpr = l.inside(e.CollExpr), l.meter(e.ValExpr)
		if e.KeyExpr != nil {
			c.KeyExpr = l.meter(e.KeyExpr)
		}
		if e.CondExpr != nil {
			c.CondExpr = l.meter(e.CondExpr)
		}
		return &c
	}
	return e // a literal, a name, or the element of a splat
}

// checkKeys meters the keys that are written out in brackets.
func (l *loader) checkKeys(e hclsyntax.Expression, t hcl.Traversal) {
	for _, step := range t {
		if index, ok := step.(hcl.TraverseIndex); ok {
			l.spend(e, max(weigh(index.Key, l.left), weighNumber(text(index.Key))))
		}
	}
}

func (l *loader) meterAll(list []hclsyntax.Expression) []hclsyntax.Expression {
	all := make([]hclsyntax.Expression, len(list))
	for i, e := range list {
		all[i] = l.meter(e)
	}
	return all
}

func (l *loader) meterArguments(call *hclsyntax.FunctionCallExpr) []hclsyntax.Expression {
	all := make([]hclsyntax.Expression, len(call.Args))
	var wanted []function.Parameter
	var further *function.Parameter
	if f, known := l.calls[call.Name]; known {
		wanted, further = f.Params(), f.VarParam()
	}
	for i, e := range call.Args {
		m := l.meter(e)
		switch {
		case i < len(wanted):
			m.number, m.unify = wanted[i].Type == cty.Number, wanted[i].Type.IsCollectionType()
		case further != nil:
			m.unify = further.Type.IsCollectionType()
		}
		all[i] = m
	}
	return all
}
