package pipeline

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/internal/file/grammar"
	"github.com/racflow/racflow/engine/internal/file/rule"
)

// Expect is an expect block: a condition on a pipeline's answers and lists. Package expect measures
// it.
type Expect struct {
	Name, Description string
	Enabled           bool
	Rule              *rule.Rule // of the kind rule.Expectation
	Input             *Source    // nil: the pipeline's
	// Set gives variables other values than in the file. Loading the file with these values checks
	// what else they change.
	Set   []Override
	Range hcl.Range // of the block's header
}

func (l *loader) readExpect(b *hcl.Block, scope rule.Scope) *Expect {
	content, diags := b.Body.Content(grammar.Described("pipeline", "expect").Schema())
	l.add(diags)
	a := arguments{l, content.Attributes}
	e := &Expect{Name: b.Labels[0], Description: a.text("description", ""), Enabled: a.enabled(), Range: b.DefRange}
	before := len(l.diags)
	if e.Rule = a.rule("rule", rule.Expectation, scope); e.Rule == nil && len(l.diags) == before { // also if the rule is null
		l.errorAt(b.DefRange, "Missing argument", `Say what is expected: rule = "accuracy >= 0.9".`)
	}
	for _, in := range content.Blocks {
		if e.Input != nil {
			l.errorAt(in.DefRange, "Duplicate block", "An expect has one input block; there is one on line %d already.", e.Input.Range.Start.Line)
			continue
		}
		s := l.readSource(in, "", false)
		if s.Path == "-" {
			l.errorAt(in.DefRange, "Standard input is read twice", "What is expected is measured on a file.")
		}
		e.Input = &s
	}
	if attr, ok := content.Attributes["variables"]; ok {
		e.Set = l.readValues(attr.Expr)
	}
	return e
}

// readValues reads the values that an expect block gives to variables.
func (l *loader) readValues(e hcl.Expression) (all []Override) {
	given := rule.Plain(l.eval(e))
	switch {
	case given.ContainsMarked():
		l.errorAt(e.Range(), "Misplaced secret", "A secret, or a value of the environment, can only be given to a plugin, in a config block: variables are shown and kept.")
		return nil
	case !given.IsWhollyKnown() || given.IsNull():
		return nil
	case !given.Type().IsObjectType() && !given.Type().IsMapType():
		l.errorAt(e.Range(), "Wrong type", `variables is a map of values: { embedder = "hashing" }.`)
		return nil
	}
	at := map[string]hcl.Range{}
	if pairs, diags := hcl.ExprMap(e); !diags.HasErrors() { // the pairs are written out
		for _, p := range pairs {
			if name := hcl.ExprAsKeyword(p.Key); name != "" {
				at[name] = p.Value.Range()
			}
		}
	}
	values := given.AsValueMap()
	for _, name := range keys(values) {
		where, ok := at[name]
		if !ok {
			where = e.Range()
		}
		have, ok := l.vars[name]
		if !ok {
			l.errorAt(where, "Unknown variable", "%s has no variable %q.%s", l.file.Path, name, rule.DidYouMean(name, keys(l.vars)))
			continue
		}
		v, err := l.Convert(values[name], have.Type(), where)
		switch {
		case err != nil:
			l.errorAt(where, "Wrong type", "The variable %q is %s: %v.", name, article(have.Type()), err)
		case v.IsNull() || holdsNull(v):
			l.errorAt(where, "Wrong type", "The variable %q cannot be null.", name)
		default:
			all = append(all, Override{Target: "var." + name, Value: l.textOf(name, v)})
		}
	}
	return all
}

// textOf returns a value as the text of a variable's override.
func (l *loader) textOf(name string, v cty.Value) string {
	if !v.Type().IsPrimitiveType() {
		return strings.TrimSpace(string(hclwrite.TokensForValue(v).Bytes()))
	}
	text, err := l.Convert(v, cty.String, hcl.Range{})
	if err != nil {
		panic(err) // every text, number and bool is written as a text
	}
	if l.paths[name] {
		return absolute(text.AsString(), l.dir)
	}
	return text.AsString()
}
