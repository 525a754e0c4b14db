package rule

import (
	"context"

	"github.com/expr-lang/expr/vm"
	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/sdk"
)

// Filter is a compiled filter: comparisons of an entry's fields with values
// that may depend on the item. It may be bound by several goroutines at once.
type Filter struct {
	*program
	reads map[string]bool
	root  part
	bound *sdk.Filter // where it does not depend on the item
}

// part is a node of a filter.
type part struct {
	op      sdk.FilterOp // 0: the operand alone decides, whatever the entry
	parts   []part
	field   sdk.Field
	key     string
	operand operand
	list    bool // the operand is a list
}

// operand is the value that a field is compared with.
type operand struct {
	code  *vm.Program // of one that depends on the item
	value any         // of any other
}

// Text is the filter as it was written, escapes resolved.
func (f *Filter) Text() string { return f.text }

// Reads reports whether the filter mentions a name of Names. Only one that
// reads "item" can bind differently for different items.
func (f *Filter) Reads(name string) bool { return f != nil && f.reads[name] }

// CompileFilter checks and compiles a filter. It is a rule that a store can
// evaluate: comparisons of one field of the entry with a value that does not
// depend on the entry, joined by and, or, not.
func CompileFilter(scope Scope, src Source) (*Filter, hcl.Diagnostics) {
	c := newCompiling(Filtering, scope, src)
	tree := c.check()
	if tree == nil {
		return nil, c.diags
	}
	f := &Filter{program: &program{text: src.Text, vars: c.vars, uses: c.uses}, reads: c.reads}
	s := splitting{compiling: c, source: tree.Source, fixed: f.begin(context.Background(), &Env{})}
	if f.root = s.part(tree.Node); c.reads["item"] && !ofEntry(tree.Node) {
		c.errorAt(whole(src.Text), "The filter is about the item alone. Compare a field of the entries (id, label, meta.KEY) with it; to choose among the items, write when.")
	}
	if f.root.depth() > sdk.MaxFilterDepth {
		c.errorAt(whole(src.Text), "The filter nests more than %d deep.", sdk.MaxFilterDepth)
	}
	if c.diags.HasErrors() {
		return nil, c.diags
	}
	if !c.reads["item"] {
		f.bound, _ = f.bind(nil) // every value has been compared already
	}
	return f, c.diags
}

func (p *part) depth() int {
	deepest := 0
	for i := range p.parts {
		deepest = max(deepest, p.parts[i].depth())
	}
	return deepest + 1
}
