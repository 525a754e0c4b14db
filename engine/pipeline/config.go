package pipeline

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/racflow/racflow/engine/bounded"
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
	c := Config{Ranges: map[string]hcl.Range{}, written: map[string]written{}}
	open, public, identity := map[string]json.RawMessage{}, map[string]json.RawMessage{}, map[string]json.RawMessage{}
	given := map[string]json.RawMessage{} // as CheckArguments wants it: nil where the value is not known
	wrong := false
	for _, labelled := range []bool{false, true} {
		for _, b := range blocks {
			l.Spend(b, bounded.Overhead)
			if labelled != (len(b.Labels) > 0) {
				continue
			}
			if labelled && b.Labels[0] != used.Name {
				l.checkOther(b, used.Kind)
				continue
			}
			for _, w := range l.argumentsOf(b, used) {
				name := w.argument.Name
				delete(open, name)
				delete(public, name)
				delete(identity, name)
				delete(given, name)
				v := l.configValue(w)
				w.secret, w.unknown = v.secret, v.unknown
				c.Ranges[name], c.written[name] = w.at, w
				c.Secrets = append(c.Secrets, v.secrets...)
				wrong = wrong || v.unknown
				if v.raw == nil && !v.unknown {
					continue
				}
				if given[name] = v.open; l.off {
					given[name] = nil // variables of a stage that is off may have placeholders
				}
				if v.unknown {
					continue
				}
				open[name], public[name] = v.open, v.raw
				if v.secret {
					public[name], _ = json.Marshal(redact.Placeholder)
				}
				if !w.argument.Secret && !w.argument.OutputUnaffected {
					identity[name] = public[name]
				}
			}
		}
	}
	slices.Sort(c.Secrets)
	c.Secrets = slices.Compact(c.Secrets)
	l.Secrets.Add(c.Secrets...)
	c.Open, _ = json.Marshal(open) // maps of valid JSON
	c.Public, _ = json.Marshal(public)
	c.Identity, _ = json.Marshal(identity)
	l.checkConfig(&c, given, used, at, !wrong && !l.off)
	return c
}

// checkConfig checks the arguments of a stage by their description and, where
// nothing is wrong with them and ask says so, by what else the stage wants of them.
func (l *loader) checkConfig(c *Config, given map[string]json.RawMessage, used sdk.Stage, at hcl.Range, ask bool) {
	err := sdk.CheckArguments(given, used.Arguments)
	if v, ok := l.Catalog.(Validator); err == nil && ask && ok {
		err = v.Validate(used.Kind, used.Name, c.Open)
	} else if err == nil && ask {
		err = used.Validate(c.Open)
	}
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

// Model is the model that the config names; empty: it names none.
func (c Config) Model() string {
	var named struct{ Model string }
	_ = json.Unmarshal(c.Public, &named) // what another stage calls so may be no name
	return named.Model
}

// Weights are how much voters count in an election.
type Weights struct {
	Weights map[string]float64 // by voter; nil: none are known
	Leader  string             // the voter whose answer stands wherever it has one; empty: none
}

// WeightsOf returns the weights that an election has resolved, as it learns them, or else those of
// its config. The pipeline may be nil.
func (p *Pipeline) WeightsOf(resolved map[string]any) (w Weights) {
	text, _ := json.Marshal(resolved) // it was JSON
	_ = json.Unmarshal(text, &w)      // what another election calls so may be no weights
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
	_ = json.Unmarshal(c.Open, &given) // made here
	value, ok := given[name]
	for _, a := range arguments {
		if !ok && a.Name == name {
			value = a.Default
		}
	}
	return string(value) == "true"
}

// Diagnostic points at the element of a config that an error is about. Errors about
// none, and about arguments that the file does not give, are at the place of use.
func (c Config) Diagnostic(use string, at hcl.Range, e *sdk.ArgumentError) *hcl.Diagnostic {
	d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Invalid argument", Subject: &at}
	text := e.Err.Error()
	w, ok := c.written[e.Argument]
	if ok {
		place := w.place(e.Path)
		if d.Subject = &place; w.secret {
			text = "its value does not fit" // the cause may quote it
		}
	}
	if e.Argument == "" {
		d.Detail = fmt.Sprintf("%s: %s.", use, text)
	} else {
		d.Detail = fmt.Sprintf("%s of %s: %s.", e.Place(), use, text)
	}
	return d
}

// checkConfigBlocks refuses config blocks that repeat each other.
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

// argumentsOf returns what a config block gives to a stage that has it.
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

// OrList is the nearest of the names, or all of them where none is near.
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
