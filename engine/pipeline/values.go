package pipeline

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/racflow/racflow/engine/redact"
	"github.com/racflow/racflow/engine/rule"
)

// secret is the mark that secret() puts on a value, with the value itself. It
// clings to everything that is made from the value, so that whoever gets such
// a thing is known to know the secret.
type secret struct{ value string }

// setContext makes what expressions can refer to from the variables and locals
// that are known so far.
func (l *loader) setContext() {
	l.context = &hcl.EvalContext{
		Functions: l.functions(),
		Variables: map[string]cty.Value{"var": cty.ObjectVal(l.vars), "local": cty.ObjectVal(l.locals)},
	}
}

// eval evaluates an expression. The value of a faulty one is unknown.
func (l *loader) eval(e hcl.Expression) cty.Value {
	if !l.checkNames(e) {
		return cty.DynamicVal
	}
	v, diags := e.Value(l.context)
	for _, d := range diags {
		d.Detail = l.Secrets.Message(d.Detail) // a function may quote what it cannot use
	}
	l.add(diags)
	if diags.HasErrors() {
		return cty.DynamicVal
	}
	return v
}

// checkNames finds unknown variables and locals: HCL itself would not say
// which name was meant.
func (l *loader) checkNames(e hcl.Expression) bool {
	ok := true
	for _, t := range e.Variables() {
		known, what := l.vars, "variable"
		switch t.RootName() {
		case "var":
		case "local":
			known, what = l.locals, "local value"
		case "knowledge":
			ok = false
			l.fault(t.SourceRange(), "Misplaced knowledge", "A knowledge can only be named by from in a retrieve block.")
			continue
		case "limit":
			ok = false
			l.fault(t.SourceRange(), "Misplaced limit", "A limit can only be named by the limit of a stage that calls services.")
			continue
		default:
			continue // HCL says it well
		}
		if len(t) < 2 {
			ok = false
			l.fault(t.SourceRange(), "Incomplete reference", "Name the %s: %s.x.", what, t.RootName())
			continue
		}
		name, isAttr := t[1].(hcl.TraverseAttr)
		if !isAttr {
			continue
		}
		if _, is := known[name.Name]; !is {
			ok = false
			l.fault(t.SourceRange(), "Unknown "+what, "There is no %s %q in this file.%s",
				what, name.Name, rule.DidYouMean(name.Name, keys(known)))
		}
	}
	return ok
}

// show is a value as text, for people.
func show(v cty.Value) string {
	switch {
	case v.ContainsMarked():
		return redact.Placeholder
	case !v.IsWhollyKnown():
		return "(unknown)"
	case v.Type().IsListType():
		var list []string
		for _, e := range v.AsValueSlice() {
			list = append(list, e.AsString())
		}
		return strings.Join(list, ", ")
	case v.Type().IsMapType():
		var list []string
		for it := v.ElementIterator(); it.Next(); {
			name, e := it.Element()
			list = append(list, name.AsString()+" = "+show(e))
		}
		return strings.Join(list, ", ")
	}
	s, err := convert.Convert(v, cty.String)
	if err != nil {
		return "(unknown)"
	}
	return s.AsString()
}

func keys[V any](m map[string]V) []string {
	list := make([]string, 0, len(m))
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}
