package bounded

import (
	"math"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// metered is an expression whose value is weighed before it is used. An expression is safe to evaluate if all
// its parts are metered: a template is not longer than its parts, and functions with large results have their
// own bounds.
type metered struct {
	hclsyntax.Expression
	*Evaluator
	number bool // the value may be read as a number
	unify  bool // the value's elements may be converted to one type

	marks cty.ValueMarks // of its latest value
}

// index is an index expression whose value also has the marks of its key. HCL omits these marks if an object is
// indexed.
type index struct {
	*hclsyntax.IndexExpr
	key *metered
}

// Value implements hclsyntax.Expression.
func (x *index) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	v, diags := x.IndexExpr.Value(ctx)
	return v.WithMarks(x.key.marks), diags
}

// Value implements hclsyntax.Expression.
func (m *metered) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	m.Spend(m.Expression, Overhead)
	v, diags := m.Expression.Value(ctx)
	_, m.marks = v.UnmarkDeep()
	m.Spend(m.Expression, Overhead*10*len(diags))
	m.Spend(m.Expression, weigh(v, m.left))
	if m.unify {
		_, n := comparisons(v.Type())
		m.Spend(m.Expression, n)
	}
	if m.number {
		m.Spend(m.Expression, weighNumber(Text(v)))
	}
	return v, diags
}

// meter returns a metered expression with the same value, whose parts are all metered.
func (by *Evaluator) meter(e hclsyntax.Expression) *metered {
	by.Spend(e, Overhead)
	return &metered{Expression: by.inside(e), Evaluator: by}
}

// inside meters the parts of an expression, but not the expression itself: a lookup of an element
// costs nothing, however large the collection is.
func (by *Evaluator) inside(e hclsyntax.Expression) hclsyntax.Expression {
	switch e := e.(type) {
	case *hclsyntax.TemplateExpr:
		if e.IsStringLiteral() {
			return e
		}
		return &hclsyntax.TemplateExpr{Parts: by.meterAll(e.Parts), SrcRange: e.SrcRange}
	case *hclsyntax.TemplateWrapExpr:
		return &hclsyntax.TemplateWrapExpr{Wrapped: by.inside(e.Wrapped), SrcRange: e.SrcRange}
	case *hclsyntax.TemplateJoinExpr:
		return &hclsyntax.TemplateJoinExpr{Tuple: by.inside(e.Tuple)}
	case *hclsyntax.ParenthesesExpr:
		return &hclsyntax.ParenthesesExpr{Expression: by.inside(e.Expression), SrcRange: e.SrcRange}
	case *hclsyntax.ScopeTraversalExpr:
		by.checkKeys(e, e.Traversal)
	case *hclsyntax.RelativeTraversalExpr:
		by.checkKeys(e, e.Traversal)
		return &hclsyntax.RelativeTraversalExpr{Source: by.inside(e.Source), Traversal: e.Traversal, SrcRange: e.SrcRange}
	case *hclsyntax.IndexExpr:
		c := *e
		key := by.meter(e.Key)
		key.number = true
		c.Collection, c.Key = by.inside(e.Collection), key
		return &index{&c, key}
	case *hclsyntax.SplatExpr:
		c := *e
		c.Source, c.Each = by.inside(e.Source), by.meter(e.Each)
		return &c
	case *hclsyntax.FunctionCallExpr:
		c := *e
		c.Args = by.meterArguments(e)
		return &c
	case *hclsyntax.ConditionalExpr:
		c := *e
		yes, no := by.meter(e.TrueResult), by.meter(e.FalseResult)
		yes.unify, no.unify = true, true
		c.Condition, c.TrueResult, c.FalseResult = by.meter(e.Condition), yes, no
		return &c
	case *hclsyntax.BinaryOpExpr:
		c := *e
		left, right := by.meter(e.LHS), by.meter(e.RHS)
		left.number = e.Op.Impl.Params()[0].Type == cty.Number
		right.number = left.number
		c.LHS, c.RHS = left, right
		return &c
	case *hclsyntax.UnaryOpExpr:
		c := *e
		c.Val = by.meter(e.Val)
		return &c
	case *hclsyntax.TupleConsExpr:
		c := *e
		c.Exprs = by.meterAll(e.Exprs)
		return &c
	case *hclsyntax.ObjectConsExpr:
		c := *e
		c.Items = make([]hclsyntax.ObjectConsItem, len(e.Items))
		for i, item := range e.Items {
			c.Items[i] = hclsyntax.ObjectConsItem{KeyExpr: by.meter(item.KeyExpr), ValueExpr: by.meter(item.ValueExpr)}
		}
		return &c
	case *hclsyntax.ObjectConsKeyExpr:
		return &hclsyntax.ObjectConsKeyExpr{Wrapped: by.inside(e.Wrapped), ForceNonLiteral: e.ForceNonLiteral}
	case *hclsyntax.ForExpr:
		c := *e
		c.CollExpr, c.ValExpr = by.inside(e.CollExpr), by.meter(e.ValExpr)
		if e.KeyExpr != nil {
			c.KeyExpr = by.meter(e.KeyExpr)
		}
		if e.CondExpr != nil {
			c.CondExpr = by.meter(e.CondExpr)
		}
		return &c
	}
	return e // a literal, a name, or the element of a splat
}

// checkKeys meters literal keys in brackets.
func (by *Evaluator) checkKeys(e hclsyntax.Expression, t hcl.Traversal) {
	for _, step := range t {
		if index, ok := step.(hcl.TraverseIndex); ok {
			by.Spend(e, max(weigh(index.Key, by.left), weighNumber(Text(index.Key))))
		}
	}
}

func (by *Evaluator) meterAll(list []hclsyntax.Expression) []hclsyntax.Expression {
	all := make([]hclsyntax.Expression, len(list))
	for i, e := range list {
		all[i] = by.meter(e)
	}
	return all
}

func (by *Evaluator) meterArguments(call *hclsyntax.FunctionCallExpr) []hclsyntax.Expression {
	all := make([]hclsyntax.Expression, len(call.Args))
	var wanted []function.Parameter
	var further *function.Parameter
	if f, known := by.Functions[call.Name]; known {
		wanted, further = f.Params(), f.VarParam()
	}
	for i, e := range call.Args {
		m := by.meter(e)
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

// weigh estimates how many bytes a value takes as a tree or as a text. It stops counting above most. It returns
// math.MaxInt for a number that is out of range.
func weigh(v cty.Value, most int) int {
	v, marks := v.Unmark()
	n := Overhead * (1 + len(marks))
	switch t := v.Type(); {
	case !v.IsKnown() || v.IsNull():
	case t == cty.String:
		text := v.AsString()
		digits := len(text) - len(strings.TrimLeft(text, "+-.0123456789"))
		n += len(text) + digits*digits/64 // cost of reading the text as a number
	case t == cty.Number:
		f := v.AsBigFloat()
		exponent := f.MantExp(nil)
		if f.IsInf() || exponent < -maxDigits || exponent > maxDigits {
			return math.MaxInt
		}
		n += max(exponent, -exponent) / 3 // decimal digits
	case v.CanIterateElements():
		for it := v.ElementIterator(); it.Next() && n <= most; {
			key, element := it.Element()
			w := weigh(element, most-n)
			if w == math.MaxInt {
				return w
			}
			if n += w; key.Type() == cty.String {
				n += len(key.AsString())
			}
		}
	}
	return n
}

// comparisons returns how many types a type consists of, and the highest cost of finding one type for all
// elements: every pair is compared, and different types are kept.
func comparisons(t cty.Type) (types, n int) {
	var inside []cty.Type
	switch {
	case t.IsTupleType():
		inside = t.TupleElementTypes()
	case t.IsObjectType():
		for _, a := range t.AttributeTypes() {
			inside = append(inside, a)
		}
	case t.IsCollectionType():
		inside = []cty.Type{t.ElementType()}
	}
	same := true
	for _, e := range inside {
		more, m := comparisons(e)
		types, n = types+more, n+m
		same = same && e.Equals(inside[0])
	}
	if same {
		return types + 1, n + types*len(inside)/8
	}
	return types + 1, n + types*len(inside)
}
