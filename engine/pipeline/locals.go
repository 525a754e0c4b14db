package pipeline

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// readLocals evaluates the values of all locals blocks, each after those that
// it refers to.
func (l *loader) readLocals(blocks hcl.Blocks) {
	all := map[string]*hcl.Attribute{}
	for _, b := range blocks {
		attrs, diags := b.Body.JustAttributes()
		l.add(diags)
		for _, name := range keys(attrs) {
			if earlier := all[name]; earlier != nil {
				l.errorAt(attrs[name].NameRange, "Duplicate local value", "There is a %q on line %d already.", name, earlier.NameRange.Start.Line)
				continue
			}
			all[name] = attrs[name]
		}
	}
	for name := range all {
		l.locals[name] = cty.DynamicVal // known by name before it is by value
	}
	done := map[string]bool{}
	var visit func(name string, above []string)
	visit = func(name string, above []string) {
		if i := slices.Index(above, name); i >= 0 {
			l.errorAt(all[name].NameRange, "Cycle of local values", "%s. Give one of them a value of its own.",
				strings.Join(append(above[i:], name), " needs "))
			return
		}
		if done[name] {
			return
		}
		for _, t := range all[name].Expr.Variables() {
			if needed, ok := nameIn(t); ok && t.RootName() == "local" && all[needed] != nil {
				visit(needed, append(above, name))
			}
		}
		if done[name] {
			return
		}
		done[name] = true
		l.locals[name] = l.eval(all[name].Expr)
	}
	for _, name := range keys(all) {
		visit(name, nil)
	}
}
