package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/racflow/racflow/engine/internal/file/bounded"
	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/process/redact"
	"github.com/racflow/racflow/sdk"
)

// readConfig makes the config of the used stage from the config blocks beside it. The unlabelled block comes
// first; the block labelled with the stage's name overrides it.
//
// It does not evaluate the config of an unused plugin, whose secrets may be missing on this machine. If the
// plugin is known, it checks only the names of the arguments. A label that no plugin has is an error if it looks
// like a misspelling of a known label. Otherwise it may name a plugin on another machine.
func (l *loader) readConfig(blocks []*hclsyntax.Block, used sdk.Stage, at hcl.Range) Config {
	c := Config{Ranges: map[string]hcl.Range{}, written: map[string]written{}, Origins: map[string]Origin{}}
	values := map[string]configured{} // by argument: the last one written
	wrong := false
	for _, labelled := range []bool{false, true} {
		for _, b := range blocks {
			l.Spend(b, bounded.Overhead)
			if labelled != (len(b.Labels) > 0) {
				continue
			}
			if labelled && b.Labels[0] != used.Name {
				if s, _ := l.Catalog.Stage(used.Kind, b.Labels[0]); NameOf(b.Labels[0], s) != used.Name {
					l.checkOther(b, used.Kind)
					continue
				}
			}
			for _, w := range l.argumentsOf(b, used) {
				v := l.configValue(w)
				w.secret, w.unknown = v.secret || len(v.origin.Private) > 0, v.unknown
				c.written[w.argument.Name], values[w.argument.Name] = w, v
				c.Secrets = append(c.Secrets, v.secrets...)
				wrong = wrong || v.unknown
			}
		}
	}
	slices.Sort(c.Secrets)
	c.Secrets = slices.Compact(c.Secrets)
	l.Secrets.Add(c.Secrets...)
	given := l.encodeConfig(&c, values)
	l.checkConfig(&c, given, used, at, !wrong && !l.off)
	return c
}

// encodeConfig sets the parts of a config from the values of its arguments. given is for sdk.CheckArguments: nil
// for unknown values.
func (l *loader) encodeConfig(c *Config, values map[string]configured) (given map[string]json.RawMessage) {
	open, public, identity := map[string]json.RawMessage{}, map[string]json.RawMessage{}, map[string]json.RawMessage{}
	given = map[string]json.RawMessage{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		v, w := values[name], c.written[name]
		c.Origins[name], c.Ranges[name] = v.origin, w.at
		c.Named = append(c.Named, v.named...)
		if v.foreign {
			c.Foreign = append(c.Foreign, name)
		}
		if v.raw == nil && !v.unknown {
			continue
		}
		if given[name] = v.raw; l.off {
			given[name] = nil // a disabled stage's variables may have placeholders
		}
		if v.unknown {
			continue
		}
		open[name], public[name] = v.raw, v.raw
		if v.secret {
			public[name], _ = json.Marshal(redact.Placeholder)
		}
		if !w.argument.Secret && !w.argument.OutputUnaffected {
			identity[name] = public[name]
		}
	}
	c.Open, _ = json.Marshal(open) // always encodes: a map of valid JSON
	c.Public, _ = json.Marshal(public)
	c.Identity, _ = json.Marshal(identity)
	return given
}

// checkConfig checks a stage's arguments against their descriptions. If all are valid and ask is set, the stage
// validates them, too.
func (l *loader) checkConfig(c *Config, given map[string]json.RawMessage, used sdk.Stage, at hcl.Range, ask bool) {
	for i, a := range used.Arguments {
		for _, path := range PathsIn(used.Arguments[i:i+1], c.Open) {
			ask = l.checkKind(path, c.Origins[a.Name], at) && ask
		}
	}
	err := sdk.CheckArguments(given, used.Arguments)
	v, foreign := l.Catalog.(validator)
	switch {
	case err != nil || !ask:
	case foreign && strings.Contains(used.Name, "/"):
		kept := *c // a third party's program gets the config, so this waits until the whole file is known
		l.validations = append(l.validations, func() { l.report(&kept, used, at, v.Validate(used.Kind, used.Name, kept.Open)) })
	case foreign:
		err = v.Validate(used.Kind, used.Name, c.Open)
	default:
		err = used.Validate(c.Open)
	}
	l.report(c, used, at, err)
}

// report adds the errors of a stage's arguments.
func (l *loader) report(c *Config, used sdk.Stage, at hcl.Range, err error) {
	for _, e := range sdk.ArgumentErrors(err) {
		arg, _ := argument(used, e.Argument)
		if _, ok := c.Ranges[e.Argument]; !ok && arg.Required {
			l.errorAt(at, "Missing argument", "%s needs %s (%s). Give it in a config block: config { %s = ... }.",
				used.Name, arg.Name, purpose(arg), arg.Name)
			continue
		}
		l.add(hcl.Diagnostics{c.Diagnostic(used.Name, at, e)})
	}
}

// Model returns the model that the config names, in a form that may be shown; empty: none.
func (c Config) Model() string {
	var named struct{ Model string }
	_ = json.Unmarshal(c.Public, &named) // another stage's argument of this name may be no text
	return c.Origins["model"].Shown(named.Model)
}

// Shown returns Public in a form that may be shown: without values of the environment and of files outside of
// the folder.
func (c Config) Shown() json.RawMessage {
	var all map[string]json.RawMessage
	_ = json.Unmarshal(c.Public, &all) // made by the loader
	for name, o := range c.Origins {
		if all[name] != nil && len(o.Private) > 0 {
			all[name], _ = json.Marshal(o.Shown(""))
		}
	}
	shown, _ := json.Marshal(all)
	return shown
}

// Paths returns the paths in the stage's arguments, absolute, as in the file.
func (s *Stage) Paths() []string { return PathsIn(s.Info.Arguments, s.Config.Public) }

// Is reports whether the stage is the built-in plugin stage of a name, not a third party's.
func (s *Stage) Is(use string) bool { return s.Use == use && s.Program == nil }

// PathsIn returns the absolute paths in a config, in the arguments that are paths.
func PathsIn(arguments []sdk.Argument, config []byte) (paths []string) {
	var values map[string]json.RawMessage
	if json.Unmarshal(config, &values) != nil {
		return nil // the stage reports the error when it opens
	}
	for _, a := range arguments {
		var path string
		if a.Type == sdk.TypePath && json.Unmarshal(values[a.Name], &path) == nil && filepath.IsAbs(path) {
			paths = append(paths, path)
		}
		paths = append(paths, PathsIn(a.Fields, values[a.Name])...) // of a block argument
	}
	return paths
}

// Weights holds the weight of each voter in an election.
type Weights struct {
	Weights map[string]float64 // by voter; nil: unknown
	Leader  string             // the voter whose answer is final if it has one; empty: none
}

// WeightsOf returns the weights that an election has learned and resolved. Without them, it returns the weights
// in the election's config. The pipeline may be nil.
func (p *Pipeline) WeightsOf(resolved map[string]any) (w Weights) {
	text, _ := json.Marshal(resolved) // it was JSON
	_ = json.Unmarshal(text, &w)      // another election may use this name for something else
	if len(resolved) > 0 || p == nil {
		return w
	}
	for _, s := range p.Stages {
		if s.Enabled && s.Block == "elect" {
			_ = json.Unmarshal(s.Config.Public, &w)
		}
	}
	return w
}

// is reports whether a bool argument is true.
func (c Config) is(name string, arguments []sdk.Argument) bool {
	var given map[string]json.RawMessage
	_ = json.Unmarshal(c.Open, &given) // made by the loader
	value, ok := given[name]
	for _, a := range arguments {
		if !ok && a.Name == name {
			value = a.Default
		}
	}
	return string(value) == "true"
}

// Diagnostic points at the element of a config that causes an error. If the error names no argument, or an
// argument that the file does not give, Diagnostic points at the place of use.
func (c Config) Diagnostic(use string, at hcl.Range, e *sdk.ArgumentError) *hcl.Diagnostic {
	d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Invalid argument", Subject: &at}
	text := e.Err.Error()
	w, ok := c.written[e.Argument]
	if ok {
		place := w.place(e.Path)
		if d.Subject = &place; w.secret {
			text = "its value does not fit" // the cause may quote the value
		}
	}
	if e.Argument == "" {
		d.Detail = fmt.Sprintf("%s: %s.", use, text)
	} else {
		d.Detail = fmt.Sprintf("%s of %s: %s.", e.Place(), use, text)
	}
	return d
}

// checkConfigBlocks rejects config blocks that repeat each other.
func (l *loader) checkConfigBlocks(blocks []*hclsyntax.Block) {
	first := map[string]*hclsyntax.Block{}
	for _, b := range blocks {
		if len(b.Labels) > 1 {
			l.errorAt(b.LabelRanges[1], "Too many labels", `A config block has at most one label, the plugin it is for: config %q.`, b.Labels[0])
		}
		if earlier := first[strings.Join(b.Labels, " ")]; earlier != nil {
			l.errorAt(b.DefRange(), "Duplicate config", "There is such a config block on line %d already. Put the arguments into one block.", earlier.TypeRange.Start.Line)
			continue
		}
		first[strings.Join(b.Labels, " ")] = b
	}
}

// argumentsOf returns the arguments that a config block gives to a stage that knows them.
func (l *loader) argumentsOf(b *hclsyntax.Block, s sdk.Stage) []written {
	var known []written
	var names []string
	for _, arg := range s.Arguments {
		names = append(names, arg.Name)
	}
	add := func(name string, w written, at hcl.Range) {
		arg, ok := argument(s, name)
		switch {
		case !ok:
			l.errorAt(at, "Unknown argument", "%s has no argument %q.%s", s.Name, name, OrList(name, names))
		case w.block != nil && arg.Type != sdk.TypeBlock:
			l.errorAt(at, "Unexpected block", "%s is no block: write %s = ...", name, name)
		default:
			w.argument = arg
			known = append(known, w)
		}
	}
	seen := map[string]bool{}
	for _, name := range keys(b.Body.Attributes) {
		a := b.Body.Attributes[name]
		seen[name] = true
		add(name, written{at: a.SrcRange, expression: a.Expr}, a.NameRange)
	}
	for _, nested := range b.Body.Blocks {
		if seen[nested.Type] {
			l.errorAt(nested.TypeRange, "Duplicate argument", "%s is given already.", nested.Type)
			continue
		}
		seen[nested.Type] = true
		add(nested.Type, written{at: nested.Range(), block: nested}, nested.TypeRange)
	}
	return known
}

func (l *loader) checkOther(b *hclsyntax.Block, kind sdk.Kind) {
	if s, ok := l.Catalog.Stage(kind, b.Labels[0]); ok {
		l.argumentsOf(b, s)
		return
	}
	if advice := rule.DidYouMean(b.Labels[0], l.Catalog.Uses(kind)); advice != "" {
		l.errorAt(b.LabelRanges[0], "Unknown plugin", "No plugin offers the %s stage %q.%s", kind, b.Labels[0], advice)
	}
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

// OrList returns advice for a wrong name: the most similar name, or all names if none is similar.
func OrList(given string, names []string) string {
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

// written is an argument as the file writes it in a config block: an expression, or a nested block.
type written struct {
	argument   sdk.Argument
	at         hcl.Range
	expression hcl.Expression
	block      *hclsyntax.Block
	secret     bool
	unknown    bool // its value is wrong and already reported, or its stage is disabled
}

// place returns where the file writes the element at a path, or the nearest part that the file spells out.
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

// Range returns the place of the argument.
func (w written) Range() hcl.Range { return w.at }

// elementOf returns the expression of one element of a list or object; nil: the file does not spell
// it out.
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

// configured is the evaluated value of an argument.
type configured struct {
	raw     json.RawMessage // nil: null, which counts as omitted, or unknown
	unknown bool            // the value is wrong and already reported, or its stage is disabled
	secret  bool
	secrets []string // to be masked
	named   []NamedSecret
	origin  Origin
	foreign bool // see Config.Foreign
}

// Accounts are the arguments, beside the secret ones, that can name an account.
var Accounts = []string{"headers", "body", "proxy"}

// isForeign reports whether an argument names an account that the file itself determines: see Config.Foreign.
func isForeign(a sdk.Argument, v cty.Value, o Origin, named []NamedSecret) bool {
	account := slices.Contains(Accounts, a.Name)
	if !account && !a.Secret {
		return false
	}
	foreign := false
	_ = cty.Walk(v, func(path cty.Path, leaf cty.Value) (bool, error) {
		text, element := bounded.Text(leaf), strings.Join(steps(path), ".")
		own := slices.ContainsFunc(named, func(n NamedSecret) bool { return n.Whole && n.Element == element })
		typed := slices.ContainsFunc(o.Said, func(said string) bool { return strings.Contains(said, text) })
		foreign = foreign || text != "" && !typed && (account || !own)
		return true, nil
	})
	return foreign
}

// keysOf returns the keys of the object or map at a path.
func keysOf(v cty.Value, at cty.Path) (keys []string) {
	v, err := at.Apply(v)
	if err != nil || v.IsNull() || !v.IsKnown() || !v.Type().IsObjectType() && !v.Type().IsMapType() {
		return nil
	}
	for it := v.ElementIterator(); it.Next(); {
		key, _ := it.Element()
		keys = append(keys, key.AsString())
	}
	return keys
}

// configValue evaluates an argument and encodes it as JSON. It checks only the type.
func (l *loader) configValue(w written) configured {
	v, paths := l.valueOf(w).UnmarkDeepWithPaths()
	marks := cty.ValueMarks{}
	var named []NamedSecret
	var keys []string // made from values that are not shown
	for _, p := range paths {
		if o, _ := originOf(p.Marks); len(o.Private) > 0 {
			keys = append(keys, keysOf(v, p.Path)...)
		}
		for m := range p.Marks {
			marks[m] = struct{}{}
			if s, ok := m.(secret); ok && s.name != "" {
				leaf, err := p.Path.Apply(v)
				whole := err == nil && leaf.Type() == cty.String && bounded.Text(leaf) == s.value
				named = append(named, NamedSecret{argument: w.argument.Name, Element: strings.Join(steps(p.Path), "."), Name: s.name, Whole: whole})
			}
		}
	}
	origin, isSecret := originOf(marks)
	if w.block == nil {
		origin.Text = l.textOfExpression(w.expression)
	}
	out := configured{secret: w.argument.Secret || isSecret, named: named, origin: origin}
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
		l.wrongType(w, err, out.secret || len(origin.Private) > 0)
		out.unknown = true
		return out
	}
	out.foreign = isForeign(w.argument, converted, origin, named)
	path := ""
	if w.argument.Type == sdk.TypePath {
		path = absolute(converted.AsString(), l.dir)
		converted = cty.StringVal(path)
	}
	if out.secret {
		out.secrets = secretStrings(converted, marks)
	}
	if len(origin.Private) > 0 {
		l.Secrets.Hide(strings.Join(append(secretStrings(converted, nil), keys...), "\n"))
	}
	if w.argument.Type == sdk.TypeInt && converted.AsBigFloat().IsInt() {
		n, _ := converted.AsBigFloat().Int(new(big.Int))
		out.raw = json.RawMessage(n.String()) // never in exponents
	} else if out.raw, err = ctyjson.Marshal(converted, converted.Type()); err != nil {
		l.wrongType(w, err, out.secret)
		out.unknown = true
	}
	if path != "" && path != converted.AsString() { // another normal form
		out.raw, _ = json.Marshal(path) // texts always encode
	}
	l.Spend(w, len(out.raw)) // the value is copied a few times
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
		err = errors.New("its value does not fit") // the cause may quote the value
	}
	e := &sdk.ArgumentError{Argument: w.argument.Name, Path: path, Err: err}
	text := err.Error()
	if len(path) > 0 {
		text = e.Error()
	}
	l.errorAt(w.place(path), "Wrong type", "%s is of type %s: %s.", w.argument.Name, w.argument.Type, text)
}

// steps returns the keys and indices of a path as texts.
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

// secretStrings returns the strings that a plugin with a secret value could print: the strings and numbers in
// the value, and the secrets from which it was made.
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
	sdk.TypeBlock: cty.DynamicPseudoType, // the block's own arguments have types
}
