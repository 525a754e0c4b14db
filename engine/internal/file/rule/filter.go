package rule

import (
	"context"
	"slices"

	"github.com/agext/levenshtein"
	"github.com/expr-lang/expr/vm"
	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/sdk"
)

// Filter is a compiled filter: comparisons of an entry's fields with values that may depend on the
// item. Several goroutines may Bind it at the same time.
type Filter struct {
	*program
	reads map[string]bool
	root  part
	bound *sdk.Filter // set if the filter does not depend on the item
}

// part is a node of a filter.
type part struct {
	op      sdk.FilterOp // 0: the operand alone decides, for every entry
	parts   []part
	field   sdk.Field
	key     string
	operand operand
	list    bool // the operand is a list
}

// operand is the value with which a field is compared.
type operand struct {
	code  *vm.Program // computes a value that depends on the item
	value any         // any other value
}

// Text returns the filter as written, with escapes resolved.
func (f *Filter) Text() string { return f.text }

// Reads reports whether the filter mentions a name of Names. Only a filter that reads "item" can
// bind differently for different items.
func (f *Filter) Reads(name string) bool { return f != nil && f.reads[name] }

// CompileFilter checks and compiles a filter. A filter is a rule that a store can evaluate. It
// compares a field of the entry with a value that does not depend on the entry, and joins such
// comparisons by and, or, not.
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
		f.bound, _ = f.bind(nil) // given has checked every value already
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

// LabelSet holds the labels of a knowledge: a list for rules that walk it, and a set. With the set,
// `answer in labels` costs the same for ten labels as for a hundred thousand. Make it once per
// knowledge; it is read-only afterwards.
type LabelSet struct {
	sorted []string
	set    map[string]struct{}
}

// NewLabelSet makes the set of the given labels, without empty and repeated labels.
func NewLabelSet(labels []string) *LabelSet {
	l := &LabelSet{set: make(map[string]struct{}, len(labels))}
	for _, label := range labels {
		if label != "" {
			l.set[label] = struct{}{}
		}
	}
	l.sorted = make([]string, 0, len(l.set))
	for label := range l.set {
		l.sorted = append(l.sorted, label)
	}
	slices.Sort(l.sorted)
	return l
}

// Sorted returns the labels in order. The caller must not change them.
func (l *LabelSet) Sorted() []string {
	if l == nil {
		return nil
	}
	return l.sorted
}

// Has reports whether the set contains label.
func (l *LabelSet) Has(label string) bool {
	if l == nil {
		return false
	}
	_, ok := l.set[label]
	return ok
}

// maxName is the longest name, in bytes, that Nearest compares.
const maxName = 100

// Nearest returns the known name that a mistyped name most likely means. It is at most two edits
// away, as in Terraform, and fewer edits than the name has bytes. "": no name is near.
func Nearest(given string, known []string) string {
	best, edits := "", min(3, len(given))
	if len(given) > maxName {
		return ""
	}
	for _, k := range slices.Sorted(slices.Values(known)) {
		if len(k) > maxName {
			continue
		}
		if d := levenshtein.Distance(given, k, nil); d < edits {
			best, edits = k, d
		}
	}
	return best
}

// DidYouMean returns Nearest as advice: a sentence after a space, or nothing.
func DidYouMean(given string, known []string) string {
	if n := Nearest(given, known); n != "" {
		return " Did you mean \"" + n + "\"?"
	}
	return ""
}
