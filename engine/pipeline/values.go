package pipeline

import (
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

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
		d.Detail = l.hide(d.Detail) // a function may quote what it cannot use
	}
	l.add(diags)
	if diags.HasErrors() {
		return cty.DynamicVal
	}
	return v
}

// hide replaces the secrets that have been read so far.
func (l *loader) hide(text string) string {
	for _, s := range slices.Backward(keys(l.secrets)) { // the longer of two that begin alike first
		text = strings.ReplaceAll(text, s, hidden)
		text = strings.ReplaceAll(text, strings.Trim(strconv.Quote(s), `"`), hidden)
	}
	return text
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

// arguments are the arguments of one block.
type arguments struct {
	*loader
	attrs hcl.Attributes
}

// value returns an argument, converted. It reports false where the argument is
// missing, null, unknown or at fault: the caller goes on with its default.
func (a arguments) value(name string, want cty.Type) (cty.Value, hcl.Range, bool) {
	attr, ok := a.attrs[name]
	if !ok {
		return cty.NilVal, hcl.Range{}, false
	}
	at := attr.Expr.Range()
	v := a.eval(attr.Expr)
	if v.ContainsMarked() {
		a.fault(at, "Misplaced secret", "A secret can only be given to a plugin, in a config block: %s is the engine's, and is shown and kept.", name)
		return cty.NilVal, at, false
	}
	if !v.IsWhollyKnown() || v.IsNull() {
		return cty.NilVal, at, false
	}
	v, err := convert.Convert(v, want)
	if err != nil {
		a.fault(at, "Wrong type", "%s is %s: %v.", name, article(want), err)
		return cty.NilVal, at, false
	}
	return v, at, true
}

func article(t cty.Type) string {
	switch t {
	case cty.String:
		return "a string"
	case cty.Number:
		return "a number"
	case cty.Bool:
		return "true or false"
	case cty.Map(cty.String), cty.Map(cty.Number):
		return "a map of strings or numbers"
	}
	return "a list of strings"
}

func (a arguments) text(name, otherwise string) string {
	if v, _, ok := a.value(name, cty.String); ok {
		return v.AsString()
	}
	return otherwise
}

func (a arguments) bool(name string, otherwise bool) bool {
	if v, _, ok := a.value(name, cty.Bool); ok {
		return v.True()
	}
	return otherwise
}

func (a arguments) texts(name string) []string {
	v, _, ok := a.value(name, cty.List(cty.String))
	if !ok {
		return nil
	}
	list := []string{}
	for _, e := range v.AsValueSlice() {
		if e.IsNull() {
			a.fault(a.attrs[name].Expr.Range(), "Wrong type", "%s holds a null.", name)
			return nil
		}
		list = append(list, e.AsString())
	}
	return list
}

func (a arguments) int(name string, otherwise, least int) int {
	return int(a.whole(name, int64(otherwise), int64(least), math.MaxInt32))
}

// whole is a whole number within bounds.
func (a arguments) whole(name string, otherwise, least, most int64) int64 {
	v, at, ok := a.value(name, cty.Number)
	if !ok {
		return otherwise
	}
	n, accuracy := v.AsBigFloat().Int64()
	switch {
	case !v.AsBigFloat().IsInt() || n < least:
		a.fault(at, "Value out of range", "%s is a whole number of at least %d.", name, least)
		return otherwise
	case accuracy != big.Exact || n > most:
		a.fault(at, "Value out of range", "%s is too large: it is at most %d.", name, most)
		return otherwise
	}
	return n
}

// share is a number from 0 to 1.
func (a arguments) share(name string, otherwise float64) float64 {
	v, at, ok := a.value(name, cty.Number)
	if !ok {
		return otherwise
	}
	f, _ := v.AsBigFloat().Float64()
	if f < 0 || f > 1 {
		a.fault(at, "Value out of range", "%s is a number from 0 to 1.", name)
		return otherwise
	}
	return f
}

func (a arguments) choice(name, otherwise string, allowed ...string) string {
	v, at, ok := a.value(name, cty.String)
	if !ok {
		return otherwise
	}
	if !slices.Contains(allowed, v.AsString()) {
		a.fault(at, "Unknown choice", "%s is one of %s, not %q.%s", name, strings.Join(allowed, ", "), v.AsString(),
			rule.DidYouMean(v.AsString(), allowed))
		return otherwise
	}
	return v.AsString()
}

func (a arguments) duration(name string) time.Duration {
	v, at, ok := a.value(name, cty.String)
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(v.AsString())
	switch {
	case err != nil:
		a.fault(at, "Invalid duration", `%s is a duration such as "30s" or "1m30s", not %q.`, name, v.AsString())
		return 0
	case d <= 0:
		a.fault(at, "Invalid duration", `%s is more than 0. Leave it out to wait as long as it takes.`, name)
		return 0
	}
	return d
}

// rule compiles the rule that an argument holds; nil where there is none or it
// is at fault.
func (a arguments) rule(name string, kind rule.Kind, scope rule.Scope) *rule.Rule {
	src, ok := a.source(name)
	if !ok {
		return nil
	}
	r, diags := rule.Compile(kind, scope, src)
	a.add(diags)
	return r
}

// filter compiles the filter that an argument holds; nil where there is none or
// it is at fault.
func (a arguments) filter(name string, scope rule.Scope) *rule.Filter {
	src, ok := a.source(name)
	if !ok {
		return nil
	}
	f, diags := rule.CompileFilter(scope, src)
	a.add(diags)
	return f
}

// source reads the text of a rule.
func (a arguments) source(name string) (rule.Source, bool) {
	attr, ok := a.attrs[name]
	if !ok || !a.givesRule(name, attr.Expr) {
		return rule.Source{}, false
	}
	src, diags := rule.NewSource(a.bytes(attr.Expr), attr.Expr, a.context)
	a.add(diags)
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
			a.fault(t.SourceRange(), "Rule without quotes", "A rule is a text: write it in quotes, as in %s = \"%s ...\".", name, root)
			return false
		}
	}
	v, _ := a.eval(e).Unmark()
	return v.IsKnown() && !v.IsNull()
}

func keys[V any](m map[string]V) []string {
	list := make([]string, 0, len(m))
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}
