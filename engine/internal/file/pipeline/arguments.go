package pipeline

import (
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/racflow/racflow/engine/internal/file/bounded"
	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/process/memory"
	"github.com/racflow/racflow/engine/internal/process/redact"
	"github.com/racflow/racflow/engine/internal/source"
)

// arguments holds the arguments of one block.
type arguments struct {
	*loader
	attrs hcl.Attributes
}

// value returns an argument, converted. It returns false if the argument is missing, null, unknown or wrong; the
// caller then uses its default.
func (a arguments) value(name string, want cty.Type) (cty.Value, hcl.Range, bool) {
	v, o, at, ok := a.valueFrom(name, want)
	if len(o.Private) > 0 {
		a.misplaced(name, at, o)
		return cty.NilVal, at, false
	}
	return v, at, ok
}

// valueFrom is value for arguments that are never shown, so that their values may come from anywhere. It also
// returns the origin of the value.
func (a arguments) valueFrom(name string, want cty.Type) (cty.Value, Origin, hcl.Range, bool) {
	attr, ok := a.attrs[name]
	if !ok {
		return cty.NilVal, Origin{}, hcl.Range{}, false
	}
	at := attr.Expr.Range()
	v, marks := a.eval(attr.Expr).UnmarkDeep()
	o, isSecret := originOf(marks)
	if o.Text = a.textOfExpression(attr.Expr); isSecret {
		a.errorAt(at, "Misplaced secret", "A secret can only be given to a plugin, in a config block: %s is the engine's, and is shown and kept.", name)
		return cty.NilVal, Origin{}, at, false
	}
	if !v.IsWhollyKnown() || v.IsNull() {
		return cty.NilVal, o, at, false
	}
	v, err := a.Convert(v, want, at)
	if err != nil {
		a.errorAt(at, "Wrong type", "%s is %s: %v.", name, article(want), err)
		return cty.NilVal, o, at, false
	}
	return v, o, at, true
}

// path reads the path of a file, relative to the pipeline file's folder.
func (a arguments) path(name string) (string, Origin) {
	v, o, at, ok := a.valueFrom(name, cty.String)
	if !ok {
		return "", o
	}
	path := absolute(v.AsString(), a.dir)
	if len(o.Private) > 0 && source.IsGlob(path) { // the pattern would be shown beside the files that it finds
		a.misplaced("a pattern of "+name, at, o)
		return "", o
	}
	return path, o
}

// null reports whether an argument is given as null.
func (a arguments) null(name string) bool {
	attr, ok := a.attrs[name]
	if !ok {
		return false
	}
	v := a.eval(attr.Expr) // add drops a repeated diagnostic
	return v.IsKnown() && v.IsNull()
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

// enabled reads whether a block is on. That may depend on values that are not shown.
func (a arguments) enabled() bool {
	v, _, _, ok := a.valueFrom("enabled", cty.Bool)
	return !ok || v.True()
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
			a.errorAt(a.attrs[name].Expr.Range(), "Wrong type", "%s holds a null.", name)
			return nil
		}
		list = append(list, e.AsString())
	}
	return list
}

func (a arguments) int(name string, otherwise, least int) int {
	return int(a.wholeNumber(name, int64(otherwise), int64(least), math.MaxInt32))
}

// wholeNumber reads a whole number within bounds.
func (a arguments) wholeNumber(name string, otherwise, least, most int64) int64 {
	v, at, ok := a.value(name, cty.Number)
	if !ok {
		return otherwise
	}
	n, accuracy := v.AsBigFloat().Int64()
	switch {
	case !v.AsBigFloat().IsInt() || n < least:
		a.errorAt(at, "Value out of range", "%s is a whole number of at least %d.", name, least)
		return otherwise
	case accuracy != big.Exact || n > most:
		a.errorAt(at, "Value out of range", "%s is too large: it is at most %d.", name, most)
		return otherwise
	}
	return n
}

// share reads a number from 0 to 1.
func (a arguments) share(name string, otherwise float64) float64 {
	v, at, ok := a.value(name, cty.Number)
	if !ok {
		return otherwise
	}
	f, _ := v.AsBigFloat().Float64()
	if f < 0 || f > 1 {
		a.errorAt(at, "Value out of range", "%s is a number from 0 to 1.", name)
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
		a.errorAt(at, "Unknown choice", "%s is one of %s, not %q.%s", name, shown(allowed), v.AsString(),
			rule.DidYouMean(v.AsString(), allowed))
		return otherwise
	}
	return v.AsString()
}

// shown lists choices. An empty choice, which comes last, is quoted.
func shown(allowed []string) string {
	if last := len(allowed) - 1; allowed[last] == "" {
		return strings.Join(allowed[:last], ", ") + ` or ""`
	}
	return strings.Join(allowed, ", ")
}

func (a arguments) duration(name string) time.Duration {
	v, at, ok := a.value(name, cty.String)
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(v.AsString())
	switch {
	case err != nil:
		a.errorAt(at, "Invalid duration", `%s is a duration such as "30s" or "1m30s", not %q.`, name, v.AsString())
		return 0
	case d <= 0:
		a.errorAt(at, "Invalid duration", `%s is more than 0. Leave it out to set no bound.`, name)
		return 0
	}
	return d
}

// size reads an amount of memory in bytes; 0: none is given.
func (a arguments) size(name string) int64 {
	v, at, ok := a.value(name, cty.String)
	if !ok {
		return 0
	}
	n, err := memory.ParseSize(v.AsString())
	if err != nil {
		a.errorAt(at, "Invalid size", "%s: %v. Leave it out to set no bound.", name, err)
	}
	return n
}

// secret is the mark that secret() puts on a value, with the variable's name and the value itself. HCL copies the
// mark to everything that is made from the value. So the marks of a result show which secrets its receiver knows.
type secret struct{ name, value string }

// contextOf returns the known variables and locals that an expression names, and the functions.
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

// nameIn returns x of var.x and var["x"].
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

// eval evaluates an expression. The result of an expression with an error is unknown.
func (l *loader) eval(e hcl.Expression) cty.Value {
	if !l.checkNames(e) {
		return cty.DynamicVal
	}
	before := l.hidden
	v, diags := l.Value(e, l.contextOf(e))
	if diags.HasErrors() && (l.hidden > before || l.namesHidden(e)) {
		for _, d := range diags {
			if !strings.Contains(d.Detail, notThere) {
				d.Detail = unshown
			}
			d.EvalContext = nil
		}
	}
	l.add(diags)
	for _, name := range l.short {
		l.warn(e.Range(), "Short secret", "The secret %s has fewer than %d bytes. Where messages hold it as a word it is replaced, within longer words and in results it is not: use a longer one if it is worth keeping.", name, redact.Shortest)
	}
	l.short = nil
	if diags.HasErrors() {
		return cty.DynamicVal
	}
	if text, ok := l.typed[e.Range().Filename]; ok {
		v = v.Mark(said{text: text})
	}
	return v
}

// namesHidden reports whether an expression names a value that is not shown.
func (l *loader) namesHidden(e hcl.Expression) bool {
	ctx := l.contextOf(e).Variables
	return hides(ctx["var"]) || hides(ctx["local"])
}

// checkNames reports unknown variables and locals, since HCL would not suggest the intended name.
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
		case "model":
			ok = false
			l.errorAt(t.SourceRange(), "Misplaced model", "A model can only be named by the model of a stage.")
			continue
		default:
			continue // HCL reports it well
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

// show returns a value as text, for people.
func show(v cty.Value) string {
	switch {
	case hides(v):
		return placeholder(v)
	case v.ContainsMarked():
		return show(rule.Plain(v))
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
