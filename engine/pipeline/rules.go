package pipeline

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/racflow/racflow/engine/rule"
)

// rule compiles the rule that an argument holds; nil if there is none or it
// is wrong.
func (a arguments) rule(name string, kind rule.Kind, scope rule.Scope) *rule.Rule {
	src, ok := a.source(name)
	if !ok {
		return nil
	}
	r, diags := rule.Compile(kind, scope, src)
	a.add(diags)
	return r
}

// filter compiles the filter that an argument holds; nil if there is none or
// it is wrong.
func (a arguments) filter(name string, scope rule.Scope) *rule.Filter {
	src, ok := a.source(name)
	if !ok {
		return nil
	}
	f, diags := rule.CompileFilter(scope, src)
	a.add(diags)
	return f
}

// What a rule takes of the evaluation's budget for each byte of it, and of the expression that
// it is written in.
const (
	compiling = 128
	reading   = 32
)

// source reads the text of a rule.
func (a arguments) source(name string) (rule.Source, bool) {
	attr, ok := a.attrs[name]
	if !ok || !a.givesRule(name, attr.Expr) {
		return rule.Source{}, false
	}
	src, diags := rule.NewSource(a.bytes(attr.Expr), attr.Expr, a.contextOf(attr.Expr))
	a.add(diags)
	a.Spend(attr.Expr, compiling*min(len(src.Text), rule.MaxSource)+reading*len(attr.Expr.Range().SliceBytes(a.bytes(attr.Expr))))
	if strings.Contains(src.Text, "var") { // whose values become part of the rule
		for _, v := range a.vars {
			a.SpendValue(attr.Expr, v, 1)
		}
	}
	return src, !diags.HasErrors()
}

// bytes are the text that an expression stands in.
func (l *loader) bytes(e hcl.Expression) []byte {
	if f := l.file.Sources[e.Range().Filename]; f != nil {
		return f.Bytes
	}
	return l.src
}

// givesRule reports whether there is a rule to read: an expression can be null
// (when = var.x ? "..." : null), or at fault.
func (a arguments) givesRule(name string, e hcl.Expression) bool {
	switch e.(type) {
	case *hclsyntax.TemplateExpr, *hclsyntax.TemplateWrapExpr:
		return true // NewSource knows what may stand in it
	}
	for _, t := range e.Variables() {
		if root := t.RootName(); root != "var" && root != "local" {
			a.errorAt(t.SourceRange(), "Rule without quotes", "A rule is a text: write it in quotes, as in %s = \"%s ...\".", name, root)
			return false
		}
	}
	v, _ := a.eval(e).Unmark()
	return v.IsKnown() && !v.IsNull()
}
