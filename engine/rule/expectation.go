package rule

import (
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
)

// Figure is something that an Expectation asks to be measured.
type Figure struct {
	Name string
	Args []any // texts, ints and float64s; nil: it takes none
}

// String is the figure as a rule writes it. Figures that are equal are written alike.
func (f Figure) String() string {
	if f.Args == nil {
		return f.Name
	}
	var args []string
	for _, a := range f.Args {
		switch a := a.(type) {
		case string:
			args = append(args, strconv.Quote(a))
		default:
			args = append(args, strconv.FormatFloat(number(a), 'g', -1, 64))
		}
	}
	return f.Name + "(" + strings.Join(args, ", ") + ")"
}

// Measured are the values of figures, by Figure.String.
type Measured map[string]Value

// Value is what was measured of a figure: the one of its first three fields that the figure has.
type Value struct {
	Number    float64
	Text      string
	Truth     bool
	Low, High float64 // of the interval, where it has one
}

func (v Value) limit(which string) float64 {
	if which == lowName {
		return v.Low
	}
	return v.High
}

// Comparison is a figure that has to be more or less than a number for an Expectation to hold.
type Comparison struct {
	Figure Figure
	Limit  string // "low" or "high" where an end of its interval is compared; empty: its value
	Op     string // of the figure with the number: ">=", ">", "<=", "<" or "=="
	Number float64
}

// Figures are what an Expectation asks to be measured, each once.
func (r *Rule) Figures() []Figure { return r.figures }

// Comparisons are those that all have to hold: the rule itself, or what it joins by and.
func (r *Rule) Comparisons() []Comparison { return r.compared }

// callable names the functions that the rule may call.
func (c *compiling) callable() []string {
	var all []string
	for _, f := range Functions(c.kind) {
		all = append(all, f.Name)
	}
	return all
}

// readFunction notes that a function of the kind is called.
func (c *compiling) readFunction(at file.Location, f *figure) {
	if ok, needs := c.scope.written(name{writer: f.writer}); !ok {
		c.unwritten(at, f.name, needs)
	}
}

// checkCalls checks the arguments of the functions of the kind: what is to be measured has to
// be known before anything is. How many there are, and of which types, is checked with all others.
func (c *compiling) checkCalls(tree *parser.Tree) {
	ast.Walk(&tree.Node, visit(func(n *ast.Node) {
		if call, ok := (*n).(*ast.CallNode); ok && c.called[calleeOf(call)] != nil && len(call.Arguments) > 0 {
			c.checkCall(call)
		}
	}))
}

// readFigures finds what is to be measured.
func (c *compiling) readFigures(tree *parser.Tree) {
	if c.kind != Expectation {
		return
	}
	ast.Walk(&tree.Node, visit(func(n *ast.Node) {
		if f, _, ok := c.figureOf(*n); ok && !slices.ContainsFunc(c.figures, func(have Figure) bool { return have.String() == f.String() }) {
			c.figures = append(c.figures, f)
		}
	}))
	if len(c.figures) == 0 && !c.diags.HasErrors() {
		c.errorAt(whole(c.src.Text), "The rule names nothing that is measured. Compare a figure with something, such as accuracy >= 0.9.")
	}
}

// checkCall checks the arguments of a function of the kind.
func (c *compiling) checkCall(call *ast.CallNode) {
	f := c.called[calleeOf(call)]
	if f.name == lowName || f.name == highName {
		of, limit, ok := c.figureOf(call.Arguments[0])
		known := slices.ContainsFunc(figures, func(g figure) bool { return g.name == of.Name && g.share })
		if !ok || limit != "" || !known {
			c.errorAt(place(call.Arguments[0]), "%s is of a figure with an interval, as in %s(accuracy).", f.name, f.name)
		}
		return
	}
	args, bad := constants(call.Arguments)
	if bad != nil {
		c.errorAt(place(bad), "Write the argument of %s out, or name a variable: it is measured before the rule is asked.", f.name)
		return
	}
	if f.check == nil {
		return
	}
	if p := f.check(args); p.text != "" {
		c.errorAt(place(call.Arguments[p.argument]), "%s", p.text)
	}
}

func calleeOf(call *ast.CallNode) string {
	if id, ok := call.Callee.(*ast.IdentifierNode); ok {
		return id.Value
	}
	return ""
}

// constants are the values of nodes that are written out, or the first that is not.
func constants(nodes []ast.Node) (all []any, bad ast.Node) {
	for _, n := range nodes {
		switch n := n.(type) {
		case *ast.StringNode:
			all = append(all, n.Value)
		case *ast.IntegerNode:
			all = append(all, n.Value)
		case *ast.FloatNode:
			all = append(all, n.Value)
		default:
			return nil, n
		}
	}
	return all, nil
}

// figureOf returns the figure that a node names, or of which it is a limit.
func (c *compiling) figureOf(n ast.Node) (f Figure, limit string, ok bool) {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		named := slices.ContainsFunc(c.names, func(known name) bool { return known.name == n.Value })
		return Figure{Name: n.Value}, "", c.kind == Expectation && named
	case *ast.CallNode:
		called := c.called[calleeOf(n)]
		switch {
		case called == nil:
		case called.name == lowName || called.name == highName:
			f, limit, ok = c.figureOf(n.Arguments[0])
			return f, called.name, ok && limit == ""
		default:
			args, bad := constants(n.Arguments)
			return Figure{Name: called.name, Args: args}, "", bad == nil
		}
	}
	return Figure{}, "", false
}

// figureAt is what takes the place of a figure: a look at what was measured. nil: there is none
// at the node.
func (c *compiling) figureAt(n ast.Node) ast.Node {
	look := func(by, key string, further ...ast.Node) ast.Node {
		return call(by, append([]ast.Node{hidden(measuredName), &ast.StringNode{Value: key}}, further...)...)
	}
	if n, ok := n.(*ast.CallNode); ok && (calleeOf(n) == lowName || calleeOf(n) == highName) && c.called[calleeOf(n)] != nil {
		inner := n.Arguments[0].(*ast.CallNode) // what it is of has been replaced
		return look(limitName, inner.Arguments[1].(*ast.StringNode).Value, &ast.StringNode{Value: calleeOf(n)})
	}
	f, _, ok := c.figureOf(n)
	if !ok {
		return nil
	}
	by := numberName
	if called := c.called[f.Name]; called != nil {
		switch called.typ.(type) {
		case string:
			by = textName
		case bool:
			by = truthName
		}
	}
	return look(by, f.String())
}

// turned is a comparison seen from its other side.
var turned = map[string]string{">=": "<=", ">": "<", "<=": ">=", "<": ">", "==": "=="}

// compared returns the comparisons of figures with numbers that all have to hold.
func (c *compiling) compared(n ast.Node) []Comparison {
	b, ok := n.(*ast.BinaryNode)
	if !ok || c.kind != Expectation {
		return nil
	}
	if b.Operator == "and" || b.Operator == "&&" {
		return append(c.compared(b.Left), c.compared(b.Right)...)
	}
	op, figure, with := b.Operator, b.Left, b.Right
	if _, bad := constants([]ast.Node{figure}); bad == nil {
		op, figure, with = turned[op], with, figure
	}
	f, limit, ok := c.figureOf(figure)
	values, bad := constants([]ast.Node{with})
	if _, isText := slices.Concat(values, []any{""})[0].(string); !ok || bad != nil || isText || turned[op] == "" {
		return nil
	}
	return []Comparison{{Figure: f, Limit: limit, Op: op, Number: number(values[0])}}
}
