package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/internal/file/bounded"
	"github.com/racflow/racflow/engine/internal/file/grammar"
	"github.com/racflow/racflow/engine/internal/file/rule"
)

// set gives a variable a value from the command line or the environment. A list is written ["a",
// "b"] or a,b, a map { knn = 2 }.
func (l *loader) set(v *variable, text, from string) {
	v.from = from
	if len(text) > bounded.MaxSource {
		l.errorAt(v.block.DefRange, "Source too large", "%s gives %q a value of %d bytes; it has at most %d KiB.", from, v.name, len(text), bounded.MaxSource>>10)
		v.value = cty.UnknownVal(v.typ)
		return
	}
	value := cty.StringVal(text)
	if v.typ.IsListType() {
		if value = l.split(text); value == cty.NilVal {
			l.errorAt(v.block.DefRange, "Wrong type", "%s gives the list %q the value %s. Write a,b or [\"a\", \"b\"].", from, v.name, text)
			v.value = cty.UnknownVal(v.typ)
			return
		}
	}
	if v.typ.IsMapType() {
		if value = l.expression(text); value == cty.NilVal || !value.CanIterateElements() {
			l.errorAt(v.block.DefRange, "Wrong type", "%s gives the map %q the value %s. Write { name = value, ... }.", from, v.name, text)
			v.value = cty.UnknownVal(v.typ)
			return
		}
	}
	before := len(l.diags)
	if l.assign(v, value, l.Dir, v.block.DefRange); from != "-var" || !l.fromFile[v.name] {
		v.value = v.value.Mark(said{text: text})
	}
	if len(l.diags) > before {
		l.diags[before].Detail = fmt.Sprintf("%s gives it %q. %s", from, text, l.diags[before].Detail)
	}
}

func (l *loader) split(text string) cty.Value {
	if !strings.HasPrefix(strings.TrimSpace(text), "[") {
		list := []cty.Value{}
		for s := range strings.SplitSeq(text, ",") {
			if s = strings.TrimSpace(s); s != "" {
				list = append(list, cty.StringVal(s))
			}
		}
		return cty.TupleVal(list)
	}
	return l.expression(text)
}

// expression evaluates a text of HCL without names; NilVal: the text is no such expression.
func (l *loader) expression(text string) cty.Value {
	e, diags := bounded.ParseExpression([]byte(text), "value")
	if diags.HasErrors() {
		return cty.NilVal
	}
	v, diags := l.Value(e, nil)
	if diags.HasErrors() || !v.IsWhollyKnown() {
		return cty.NilVal
	}
	return v
}

// assign gives a variable a value, converted to its type. It makes a path absolute, relative to dir.
func (l *loader) assign(v *variable, value cty.Value, dir string, at hcl.Range) {
	v.value = cty.UnknownVal(v.typ)
	if !value.IsWhollyKnown() {
		return
	}
	converted, err := l.Convert(value, v.typ, at)
	if err != nil {
		l.errorAt(at, "Wrong type", "The variable %q is %s: %v.", v.name, article(v.typ), err)
		return
	}
	bare, marks := converted.Unmark()
	if bare.IsNull() || holdsNull(bare) {
		l.errorAt(at, "Wrong type", "The variable %q cannot be null. Leave its default out to ask for a value.", v.name)
		return
	}
	if v.path {
		bare = cty.StringVal(absolute(bare.AsString(), dir))
	}
	v.value = bare.WithMarks(marks)
}

// inPlaceOf returns advice for an unknown variable: what to set in its place.
func inPlaceOf(name string) string {
	switch {
	case name == "base_url":
		return " Set OPENAI_BASE_URL in the environment, or the model block's argument: -set model.NAME.base_url=..."
	case slices.Contains(grammar.Described("model").Names(), name):
		return fmt.Sprintf(" Set the argument of the model block: -set model.NAME.%s=...", name)
	case slices.Contains([]string{"chunk", "embed", "embedder", "store"}, name):
		return fmt.Sprintf(" Set the argument of the block: -set %s.NAME.use=..., where NAME is the knowledge", strings.TrimSuffix(name, "der"))
	}
	return " Another block's argument is set by -set BLOCK.NAME.ARGUMENT=...; racflow stages lists the arguments."
}

// holdsNull reports whether an element of a list or map is null.
func holdsNull(v cty.Value) bool {
	return v.CanIterateElements() && slices.ContainsFunc(v.AsValueSlice(), cty.Value.IsNull)
}

// typeOf returns the type of a variable that has a default but no type.
func typeOf(v cty.Value) cty.Type {
	switch t := v.Type(); t {
	case cty.Number, cty.Bool:
		return t
	default:
		if t.IsTupleType() || t.IsListType() {
			return cty.List(cty.String)
		}
		if t.IsObjectType() || t.IsMapType() {
			return cty.Map(cty.String)
		}
		return cty.String
	}
}

func (l *loader) readType(v *variable, e hcl.Expression) {
	switch hcl.ExprAsKeyword(e) {
	case "string":
		v.typ = cty.String
		return
	case "path":
		v.typ, v.path = cty.String, true
		return
	case "number":
		v.typ = cty.Number
		return
	case "bool":
		v.typ = cty.Bool
		return
	}
	if call, diags := hcl.ExprCall(e); !diags.HasErrors() && len(call.Arguments) == 1 {
		switch call.Name + " of " + hcl.ExprAsKeyword(call.Arguments[0]) {
		case "list of string":
			v.typ = cty.List(cty.String)
			return
		case "map of number":
			v.typ = cty.Map(cty.Number)
			return
		case "map of string":
			v.typ = cty.Map(cty.String)
			return
		}
	}
	v.value = cty.DynamicVal
	l.errorAt(e.Range(), "Unknown type", "A variable's type is string, number, bool, path, list(string), map(number) or map(string).%s",
		rule.DidYouMean(hcl.ExprAsKeyword(e), []string{"string", "number", "bool", "path", "list", "map"}))
}

// variable is a variable block with the value that it was given.
type variable struct {
	name  string
	typ   cty.Type
	path  bool // values are paths
	doc   string
	block *hcl.Block
	value cty.Value // NilVal: no value yet; unknown: wrong
	from  string
}

// readVariables reads the variable blocks and gives each variable its value, from the first of
// these: -var, a -var-file, RACFLOW_VAR_x, the default.
func (l *loader) readVariables(blocks hcl.Blocks) {
	var all []*variable
	known := map[string]*variable{}
	for _, b := range l.distinct(blocks) {
		v := l.readVariable(b)
		all = append(all, v)
		known[v.name] = v
	}
	for _, v := range all {
		if text, ok := l.Getenv("RACFLOW_VAR_" + v.name); ok {
			l.set(v, text, "RACFLOW_VAR_"+v.name)
		}
	}
	for _, name := range l.VarFiles {
		l.readVarFile(name, known)
	}
	for _, name := range keys(l.Vars) {
		if v := known[name]; v != nil {
			l.set(v, l.Vars[name], "-var")
			continue
		}
		l.add(hcl.Diagnostics{{
			Severity: hcl.DiagError, Summary: "Unknown variable",
			Detail: fmt.Sprintf("-var %s: %s has no variable %q.%s", name, l.file.Path, name, cmp.Or(rule.DidYouMean(name, keys(known)), inPlaceOf(name))),
		}})
	}
	for _, v := range all {
		if v.value == cty.NilVal {
			l.errorAt(v.block.DefRange, "Variable without a value",
				"%q has no default, so it must be given: -var %s=..., a line in a -var-file, or RACFLOW_VAR_%s in the environment.",
				v.name, v.name, v.name)
			v.value = cty.UnknownVal(v.typ)
		}
		l.vars[v.name], l.paths[v.name] = v.value, v.path
		l.file.Variables = append(l.file.Variables, Variable{Name: v.name, Doc: v.doc, Value: show(v.value), From: v.from})
	}
}

func (l *loader) readVariable(b *hcl.Block) *variable {
	v := &variable{name: b.Labels[0], typ: cty.DynamicPseudoType, block: b}
	content, diags := b.Body.Content(grammar.Described("variable").Schema())
	l.add(diags)
	args := arguments{l, content.Attributes}
	v.doc = args.text("description", "")
	if a, ok := content.Attributes["type"]; ok {
		l.readType(v, a.Expr)
	}
	a, ok := content.Attributes["default"]
	if !ok {
		if v.typ == cty.DynamicPseudoType {
			v.typ = cty.String
		}
		return v
	}
	v.from = "default"
	v.value = l.eval(a.Expr)
	if _, typed := content.Attributes["type"]; !typed {
		v.typ = typeOf(v.value)
	}
	l.assign(v, v.value, l.dir, a.Expr.Range())
	return v
}

// readVarFile reads lines of the form name = value.
func (l *loader) readVarFile(name string, known map[string]*variable) {
	src, err := bounded.ReadAny(absolute(name, l.Dir), bounded.MaxSource)
	if err != nil {
		l.add(hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Cannot read a file of variables", Detail: fmt.Sprintf("-var-file %s: %v.", name, err)}})
		return
	}
	f, diags := bounded.Parse(src, name)
	l.file.Sources[name] = f
	l.add(diags)
	if diags.HasErrors() {
		return
	}
	attrs, diags := f.Body.JustAttributes()
	l.add(diags)
	for _, n := range keys(attrs) {
		a := attrs[n]
		v := known[n]
		if v == nil {
			l.errorAt(a.NameRange, "Unknown variable", "%s has no variable %q.%s", l.file.Path, n, rule.DidYouMean(n, keys(known)))
			continue
		}
		v.from = name
		l.assign(v, l.eval(a.Expr), l.Dir, a.Expr.Range())
	}
}

// seen returns the variables for rules. A wrong variable has the zero value of its type, so that
// rules which read it are still checked.
func (l *loader) seen() map[string]cty.Value {
	if l.visible != nil {
		return l.visible
	}
	all := map[string]cty.Value{}
	for name, v := range l.vars {
		if !v.ContainsMarked() && !v.IsWhollyKnown() {
			switch t := v.Type(); t {
			case cty.Number:
				v = cty.Zero
			case cty.Bool:
				v = cty.False
			case cty.List(cty.String):
				v = cty.ListValEmpty(cty.String)
			default:
				v = cty.StringVal("")
				if t.IsMapType() {
					v = cty.MapValEmpty(t.ElementType())
				}
			}
		}
		all[name] = v
	}
	l.visible = all
	return all
}
