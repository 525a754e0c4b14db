package pipeline

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/racflow/racflow/engine/redact"
	"github.com/racflow/racflow/engine/rule"
	"github.com/racflow/racflow/sdk"
)

// readConfig makes the config of the stage that is used from the config blocks
// beside it: the unlabelled one, and over it the one labelled with its name.
//
// The config of a plugin that is not used is not evaluated: its secrets may be
// missing on this machine. Only the names of its arguments are checked, where
// the plugin is known; a label that no plugin has is an error where it looks
// like a slip of one that is there, and otherwise left to a machine that has
// the plugin.
func (l *loader) readConfig(blocks []*hclsyntax.Block, used sdk.Stage, at hcl.Range) Config {
	c := Config{Ranges: map[string]hcl.Range{}}
	open, public, identity := map[string]json.RawMessage{}, map[string]json.RawMessage{}, map[string]json.RawMessage{}
	given := map[string]bool{}
	for _, labelled := range []bool{false, true} {
		for _, b := range blocks {
			l.spend(b, overhead)
			if labelled != (len(b.Labels) > 0) {
				continue
			}
			if labelled && b.Labels[0] != used.Name {
				l.checkOther(b, used.Kind)
				continue
			}
			for _, a := range l.argumentsOf(b, used) {
				arg, _ := argument(used, a.Name)
				delete(open, a.Name)
				delete(public, a.Name)
				delete(identity, a.Name)
				c.Ranges[a.Name] = a.SrcRange
				raw, secrets, isSecret, ok := l.configValue(arg, a.Expr)
				given[a.Name] = raw != nil || !ok
				c.Secrets = append(c.Secrets, secrets...)
				if raw != nil {
					open[a.Name], public[a.Name] = raw, raw
					if isSecret {
						public[a.Name], _ = json.Marshal(redact.Placeholder)
					}
					if !arg.Secret && !arg.Neutral {
						identity[a.Name] = public[a.Name]
					}
				}
			}
		}
	}
	for _, arg := range used.Arguments {
		if arg.Required && !given[arg.Name] {
			l.fault(at, "Missing argument", "%s needs %s (%s). Give it in a config block: config { %s = ... }.",
				used.Name, arg.Name, purpose(arg), arg.Name)
		}
	}
	slices.Sort(c.Secrets)
	c.Secrets = slices.Compact(c.Secrets)
	l.Secrets.Add(c.Secrets...)
	c.Open, _ = json.Marshal(open) // maps of valid JSON
	c.Public, _ = json.Marshal(public)
	c.Identity, _ = json.Marshal(identity)
	return c
}

// checkConfigBlocks refuses config blocks that repeat each other.
func (l *loader) checkConfigBlocks(blocks []*hclsyntax.Block) {
	first := map[string]*hclsyntax.Block{}
	for _, b := range blocks {
		if len(b.Labels) > 1 {
			l.fault(b.LabelRanges[1], "Too many labels", `A config block has at most one label, the plugin it is for: config %q.`, b.Labels[0])
		}
		if earlier := first[strings.Join(b.Labels, " ")]; earlier != nil {
			l.fault(b.DefRange(), "Duplicate config", "There is such a config block on line %d already. Put the arguments into one block.", earlier.TypeRange.Start.Line)
			continue
		}
		first[strings.Join(b.Labels, " ")] = b
	}
}

// argumentsOf returns the arguments of a config block that the stage has.
func (l *loader) argumentsOf(b *hclsyntax.Block, s sdk.Stage) []*hclsyntax.Attribute {
	for _, nested := range b.Body.Blocks {
		l.fault(nested.TypeRange, "Unexpected block", "A config block holds arguments only: write %s = { ... } for a map.", nested.Type)
	}
	var known []*hclsyntax.Attribute
	for _, name := range keys(b.Body.Attributes) {
		a := b.Body.Attributes[name]
		if _, ok := argument(s, name); !ok {
			var names []string
			for _, arg := range s.Arguments {
				names = append(names, arg.Name)
			}
			l.fault(a.NameRange, "Unknown argument", "%s has no argument %q.%s", s.Name, name, orList(name, names))
			continue
		}
		known = append(known, a)
	}
	return known
}

func (l *loader) checkOther(b *hclsyntax.Block, kind sdk.Kind) {
	if s, ok := l.Catalog.Stage(kind, b.Labels[0]); ok {
		l.argumentsOf(b, s)
		return
	}
	if advice := rule.DidYouMean(b.Labels[0], l.Catalog.Uses(kind)); advice != "" {
		l.fault(b.LabelRanges[0], "Unknown plugin", "No plugin offers the %s stage %q.%s", kind, b.Labels[0], advice)
	}
}

// configValue evaluates an argument and makes it JSON, nil where it is null and
// so counts as left out. Where the value is secret, it returns the strings that
// nobody may see. It reports false where the value is at fault or, in a stage
// that is off, unknown.
func (l *loader) configValue(arg sdk.Argument, e hcl.Expression) (raw json.RawMessage, secrets []string, isSecret, ok bool) {
	v, marks := l.eval(e).UnmarkDeep()
	isSecret = arg.Secret || len(marks) > 0
	if !v.IsWhollyKnown() {
		return nil, nil, isSecret, false
	}
	if v.IsNull() {
		return nil, nil, isSecret, true
	}
	want := configTypes[arg.Type]
	converted, err := l.convert(v, want, e.Range())
	if err != nil {
		l.fault(e.Range(), "Wrong type", "%s is of type %s: %v.", arg.Name, arg.Type, err)
		return nil, nil, isSecret, false
	}
	if arg.Type == sdk.TypePath {
		converted = cty.StringVal(absolute(converted.AsString(), l.dir))
	}
	if arg.Type == sdk.TypeInt && !converted.AsBigFloat().IsInt() {
		l.fault(e.Range(), "Wrong type", "%s is a whole number.", arg.Name)
		return nil, nil, isSecret, false
	}
	if arg.Type == sdk.TypeInt {
		n, _ := converted.AsBigFloat().Int(new(big.Int))
		raw = json.RawMessage(n.String()) // never in exponents
	} else if raw, err = ctyjson.Marshal(converted, want); err != nil {
		l.fault(e.Range(), "Wrong type", "%s is of type %s: %v.", arg.Name, arg.Type, err)
		return nil, nil, isSecret, false
	}
	l.spend(e, len(raw)) // which is copied a few times
	if err := arg.Check(raw); err != nil {
		detail := err.Error()
		if isSecret {
			detail = "its value does not fit" // the cause would quote it
		}
		l.fault(e.Range(), "Invalid argument", "%s: %s.", arg.Name, detail)
		return nil, nil, isSecret, false
	}
	if isSecret {
		secrets = secretStrings(converted, marks)
	}
	return raw, secrets, isSecret, true
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
	sdk.TypeStringList: cty.List(cty.String), sdk.TypeStringMap: cty.Map(cty.String),
}

func argument(s sdk.Stage, name string) (sdk.Argument, bool) {
	for _, a := range s.Arguments {
		if a.Name == name {
			return a, true
		}
	}
	return sdk.Argument{}, false
}

func purpose(a sdk.Argument) string {
	if a.Doc != "" {
		return strings.TrimSuffix(a.Doc, ".")
	}
	return string(a.Type)
}

// orList is the nearest of the names, or all of them where none is near.
func orList(given string, names []string) string {
	if advice := rule.DidYouMean(given, names); advice != "" {
		return advice
	}
	if len(names) == 0 {
		return " It has none."
	}
	if len(names) == 1 {
		return " There is " + names[0] + "."
	}
	return " There are " + strings.Join(names, ", ") + "."
}
