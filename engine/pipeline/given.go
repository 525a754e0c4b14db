package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/bounded"
	"github.com/racflow/racflow/engine/rule"
)

// set gives a variable a value from the command line or the environment. A
// list is written ["a", "b"] or a,b, a map { knn = 2 }.
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
	l.take(v, value, l.Dir, v.block.DefRange)
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

// expression is the value of a text that is HCL without names; NilVal where it
// is none.
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

// take gives a variable a value, converted to its type. A path is made
// absolute from dir.
func (l *loader) take(v *variable, value cty.Value, dir string, at hcl.Range) {
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

// holdsNull reports whether an element of a list or map is null.
func holdsNull(v cty.Value) bool {
	return v.CanIterateElements() && slices.ContainsFunc(v.AsValueSlice(), cty.Value.IsNull)
}

// typeOf is the type of a variable that has only a default.
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
