package pipeline

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/racflow/racflow/engine/bounded"
	"github.com/racflow/racflow/engine/redact"
	"github.com/racflow/racflow/engine/rule"
)

// secret is the mark that secret() puts on a value, with the value itself. It
// clings to everything that is made from the value, so that whoever gets such
// a thing is known to know the secret.
type secret struct{ value string }

// contextOf makes what an expression can refer to: the variables and locals
// that it names, as far as they are known.
func (l *loader) contextOf(e hcl.Expression) *hcl.EvalContext {
	named := map[string]map[string]cty.Value{"var": {}, "local": {}}
	for _, t := range e.Variables() {
		known := l.vars
		if t.RootName() == "local" {
			known = l.locals
		}
		name, _ := nameIn(t)
		if v, ok := known[name]; ok && named[t.RootName()] != nil {
			named[t.RootName()][name] = v
		}
	}
	return &hcl.EvalContext{
		Functions: l.Functions,
		Variables: map[string]cty.Value{"var": cty.ObjectVal(named["var"]), "local": cty.ObjectVal(named["local"])},
	}
}

// nameIn is x in var.x and var["x"].
func nameIn(t hcl.Traversal) (name string, ok bool) {
	if len(t) < 2 {
		return "", false
	}
	switch step := t[1].(type) {
	case hcl.TraverseAttr:
		return step.Name, true
	case hcl.TraverseIndex:
		return bounded.Text(step.Key), step.Key.Type() == cty.String
	}
	return "", false
}

// eval evaluates an expression. The value of a faulty one is unknown.
func (l *loader) eval(e hcl.Expression) cty.Value {
	if !l.checkNames(e) {
		return cty.DynamicVal
	}
	v, diags := l.Value(e, l.contextOf(e))
	for _, d := range diags {
		d.Detail = l.Secrets.Message(d.Detail) // a function may quote what it cannot use
	}
	l.add(diags)
	for _, name := range l.short {
		l.warn(e.Range(), "Short secret", "The secret %s has fewer than %d bytes. Where messages hold it as a word it is replaced, within longer words and in results it is not: use a longer one if it is worth keeping.", name, redact.Shortest)
	}
	l.short = nil
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
			l.errorAt(t.SourceRange(), "Misplaced knowledge", "A knowledge can only be named by from in a retrieve block.")
			continue
		case "limit":
			ok = false
			l.errorAt(t.SourceRange(), "Misplaced limit", "A limit can only be named by the limit of a stage that calls services.")
			continue
		default:
			continue // HCL says it well
		}
		if len(t) < 2 {
			ok = false
			l.errorAt(t.SourceRange(), "Incomplete reference", "Name the %s: %s.x.", what, t.RootName())
			continue
		}
		name, isName := nameIn(t)
		if _, is := known[name]; isName && !is {
			ok = false
			l.errorAt(t.SourceRange(), "Unknown "+what, "There is no %s %q in this file.%s",
				what, name, rule.DidYouMean(name, keys(known)))
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
