package pipeline

import (
	"encoding/json"
	"errors"
	"math/big"
	"strconv"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/racflow/racflow/sdk"
)

// written is an argument as it stands in a config block: an expression or, for an
// argument that is a block, the block.
type written struct {
	argument   sdk.Argument
	at         hcl.Range
	expression hcl.Expression
	block      *hclsyntax.Block
	secret     bool
	unknown    bool // its value is wrong, and reported already, or of a stage that is off
}

// place is where the element that a path leads to is written, as far as the file
// spells it out.
func (w written) place(path []string) hcl.Range {
	e := w.expression
	if w.block != nil {
		if len(path) == 0 || w.block.Body.Attributes[path[0]] == nil {
			return w.block.TypeRange
		}
		e, path = w.block.Body.Attributes[path[0]].Expr, path[1:]
	}
	for _, step := range path {
		next := elementOf(e, step)
		if next == nil {
			break
		}
		e = next
	}
	return e.Range()
}

// Range is where the argument stands.
func (w written) Range() hcl.Range { return w.at }

// elementOf returns the part of an expression that an element is made by; nil: the
// expression does not spell it out.
func elementOf(e hcl.Expression, step string) hcl.Expression {
	if list, diags := hcl.ExprList(e); !diags.HasErrors() {
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(list) {
			return list[i]
		}
		return nil
	}
	pairs, _ := hcl.ExprMap(e)
	for _, p := range pairs {
		key, diags := p.Key.Value(nil)
		if !diags.HasErrors() && key.IsWhollyKnown() && !key.IsNull() && key.Type() == cty.String && key.AsString() == step {
			return p.Value
		}
	}
	return nil
}

// configured is the value of an argument.
type configured struct {
	raw     json.RawMessage // nil: it is null, and so counts as left out, or unknown
	open    json.RawMessage // the same as the stage opens with: a path is that of this machine
	unknown bool            // it is wrong, and reported already, or of a stage that is off
	secret  bool
	secrets []string // that nobody may see
}

// configValue evaluates an argument and makes it JSON. It checks nothing but the type.
func (l *loader) configValue(w written) configured {
	v, marks := l.valueOf(w).UnmarkDeep()
	out := configured{secret: w.argument.Secret || len(marks) > 0}
	if !v.IsWhollyKnown() {
		out.unknown = true
		return out
	}
	if v.IsNull() {
		return out
	}
	want := configTypes[w.argument.Type]
	converted, err := l.Convert(v, want, w.at)
	if err != nil {
		l.wrongType(w, err, out.secret)
		out.unknown = true
		return out
	}
	if w.argument.Type == sdk.TypePath {
		converted = cty.StringVal(absolute(converted.AsString(), l.dir))
	}
	if out.secret {
		out.secrets = secretStrings(converted, marks)
	}
	if w.argument.Type == sdk.TypeInt && converted.AsBigFloat().IsInt() {
		n, _ := converted.AsBigFloat().Int(new(big.Int))
		out.raw = json.RawMessage(n.String()) // never in exponents
	} else if out.raw, err = ctyjson.Marshal(converted, converted.Type()); err != nil {
		l.wrongType(w, err, out.secret)
		out.unknown = true
	}
	out.open = out.raw
	if w.argument.Type == sdk.TypePath && l.Away != nil {
		out.open, _ = json.Marshal(l.at(converted.AsString())) // texts always encode
	}
	l.Spend(w, len(out.raw)) // which is copied a few times
	return out
}

// valueOf evaluates the expression, or the block as an object.
func (l *loader) valueOf(w written) cty.Value {
	if w.block == nil {
		return l.eval(w.expression)
	}
	for _, b := range w.block.Body.Blocks {
		l.errorAt(b.TypeRange, "Unexpected block", "%s holds arguments only: write %s = { ... } for a map.", w.block.Type, b.Type)
	}
	object := map[string]cty.Value{}
	for _, name := range keys(w.block.Body.Attributes) {
		object[name] = l.eval(w.block.Body.Attributes[name].Expr)
	}
	return cty.ObjectVal(object)
}

func (l *loader) wrongType(w written, err error, isSecret bool) {
	var path []string
	var at cty.PathError
	if errors.As(err, &at) {
		path = steps(at.Path)
	}
	if isSecret {
		err = errors.New("its value does not fit") // the cause may quote it
	}
	e := &sdk.ArgumentError{Argument: w.argument.Name, Path: path, Err: err}
	text := err.Error()
	if len(path) > 0 {
		text = e.Error()
	}
	l.errorAt(w.place(path), "Wrong type", "%s is of type %s: %s.", w.argument.Name, w.argument.Type, text)
}

// steps are the keys and indices of a path.
func steps(path cty.Path) []string {
	var all []string
	for _, step := range path {
		switch s := step.(type) {
		case cty.GetAttrStep:
			all = append(all, s.Name)
		case cty.IndexStep:
			if text, err := convert.Convert(s.Key, cty.String); err == nil {
				all = append(all, text.AsString())
			}
		}
	}
	return all
}

// secretStrings returns what a plugin that got a secret value could tell: the
// strings and numbers in the value, and the secrets that it was made from.
func secretStrings(v cty.Value, marks cty.ValueMarks) []string {
	var all []string
	add := func(s string) {
		if s != "" {
			all = append(all, s)
		}
	}
	for m := range marks {
		if s, ok := m.(secret); ok {
			add(s.value)
		}
	}
	_ = cty.Walk(v, func(_ cty.Path, leaf cty.Value) (bool, error) {
		if leaf.IsNull() || leaf.Type() != cty.String && leaf.Type() != cty.Number {
			return true, nil
		}
		if text, err := convert.Convert(leaf, cty.String); err == nil {
			add(text.AsString())
		}
		return true, nil
	})
	return all
}

var configTypes = map[sdk.ArgumentType]cty.Type{
	sdk.TypeString: cty.String, sdk.TypeDuration: cty.String, sdk.TypePath: cty.String,
	sdk.TypeInt: cty.Number, sdk.TypeFloat: cty.Number, sdk.TypeBool: cty.Bool,
	sdk.TypeStringList: cty.List(cty.String), sdk.TypeNumberList: cty.List(cty.Number),
	sdk.TypeStringMap: cty.Map(cty.String), sdk.TypeNumberMap: cty.Map(cty.Number), sdk.TypeListMap: cty.Map(cty.List(cty.String)),
	sdk.TypeBlock: cty.DynamicPseudoType, // its arguments have types of their own
}
