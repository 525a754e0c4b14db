package pipeline

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/bounded"
	"github.com/racflow/racflow/engine/grammar"
	"github.com/racflow/racflow/engine/rule"
)

// variable is a variable block, and the values that it was given.
type variable struct {
	name  string
	typ   cty.Type
	path  bool // values are paths
	doc   string
	block *hcl.Block
	value cty.Value // NilVal: none yet; unknown: wrong
	from  string
}

// readVariables reads the variable blocks and gives each its value: of -var,
// else of a -var-file, else of RACFLOW_VAR_x, else the default.
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
			Detail: fmt.Sprintf("-var %s: %s has no variable %q.%s", name, l.file.Path, name, rule.DidYouMean(name, keys(known))),
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
	l.take(v, v.value, l.dir, a.Expr.Range())
	return v
}

// readVarFile reads lines of the form name = value.
func (l *loader) readVarFile(name string, known map[string]*variable) {
	done := l.Busy(bounded.Top(name))
	src, err := bounded.ReadAny(l.at(absolute(name, l.Dir)), bounded.MaxSource)
	done()
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
		l.take(v, l.eval(a.Expr), l.Dir, a.Expr.Range())
	}
}

// seen is the variables as rules see them: a wrong one is the zero
// value of its type, so that its rules are still checked.
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
