package rule

import (
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
)

// Figure is a measurement that an Expectation needs.
type Figure struct {
	Name string
	Args []any // texts, ints and float64s; nil: the figure takes none
}

// String returns the figure as a rule writes it. Equal figures have equal strings.
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

// Measured maps Figure.String to the value of the figure.
type Measured map[string]Value

// Value is the measured value of a figure. Only one of the first three fields is used.
type Value struct {
	Number    float64
	Text      string
	Truth     bool
	Low, High float64 // of the interval, if the figure has one
}

func (v Value) limit(which string) float64 {
	if which == lowName {
		return v.Low
	}
	return v.High
}

// Comparison is a condition of an Expectation: a figure compared with a number.
type Comparison struct {
	Figure Figure
	Limit  string // "low" or "high" to compare an end of the interval; empty: the value
	Op     string // with the figure on the left: ">=", ">", "<=", "<" or "=="
	Number float64
}

// Figures returns the figures that an Expectation needs, each once.
func (r *Rule) Figures() []Figure { return r.figures }

// Comparisons returns the comparisons that must all hold: the rule itself, or the comparisons that it joins
// by and.
func (r *Rule) Comparisons() []Comparison { return r.compared }

// callable names the functions that the rule may call.
func (c *compiling) callable() []string {
	var all []string
	for _, f := range Functions(c.kind) {
		all = append(all, f.Name)
	}
	return all
}

// readFunction checks that the pipeline has the stage that a called function needs.
func (c *compiling) readFunction(at file.Location, f *figure) {
	if ok, needs := c.scope.written(name{writer: f.writer}); !ok {
		c.unwritten(at, f.name, needs)
	}
}

// checkCalls checks the arguments of the kind's functions before anything is measured, because the arguments
// say what to measure. checkTypes checks their number and types.
func (c *compiling) checkCalls(tree *parser.Tree) {
	ast.Walk(&tree.Node, visit(func(n *ast.Node) {
		if call, ok := (*n).(*ast.CallNode); ok && c.called[calleeOf(call)] != nil && len(call.Arguments) > 0 {
			c.checkCall(call)
		}
	}))
}

// readFigures collects the figures to measure.
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

// constants returns the values of literal nodes, or the first node that is not literal.
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

// figureOf returns the figure that a node names. The figure may be inside low() or high(); limit is then
// that name.
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

// figureAt returns the node that replaces a figure: a lookup of its measured value. nil: the node
// is not a figure.
func (c *compiling) figureAt(n ast.Node) ast.Node {
	look := func(by, key string, further ...ast.Node) ast.Node {
		return call(by, append([]ast.Node{hidden(measuredName), &ast.StringNode{Value: key}}, further...)...)
	}
	if n, ok := n.(*ast.CallNode); ok && (calleeOf(n) == lowName || calleeOf(n) == highName) && c.called[calleeOf(n)] != nil {
		inner := n.Arguments[0].(*ast.CallNode) // its argument has been replaced
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

// turned maps a comparison to the equivalent one with swapped sides.
var turned = map[string]string{">=": "<=", ">": "<", "<=": ">=", "<": ">", "==": "=="}

// compared returns the comparisons of figures with numbers that must all hold.
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

// figure is a name or a function of an Expectation.
type figure struct {
	name   string
	form   string // of a function, such as recall("label"); empty: it is a name
	doc    string
	writer writer
	typ    any                      // a value of the figure's type
	takes  []any                    // signatures of a function, such as new(func(string) float64)
	share  bool                     // it has an interval: low and high
	check  func(args []any) problem // checks a function's arguments; nil: all values are valid
}

// problem describes what is wrong with an argument; the zero value: nothing.
type problem struct {
	argument int
	text     string
}

// figures lists all figures, in the order of the documentation.
var figures = []figure{
	{name: "accuracy", doc: "The share of the items with a label that got it. Where the knowledge does not have the label, no answer is the right one. An item that failed is wrong.", writer: elects, typ: 0.0, share: true},
	{name: "f1", doc: "The mean F1 of all labels that were expected or answered.", writer: elects, typ: 0.0, share: true},
	{name: "recall", form: `recall("LABEL")`, doc: "The share of the items with this label that got it.", writer: elects, typ: 0.0, share: true, takes: []any{new(func(string) float64)}, check: named("label")},
	{name: "precision", form: `precision("LABEL")`, doc: "The share of the items that got this label and should have it.", writer: elects, typ: 0.0, share: true, takes: []any{new(func(string) float64)}, check: named("label")},
	{name: "answered", form: "answered(ACCURACY)", doc: "The share of the items that are answered where so many of the answers are promised to be right, with 95 % confidence, and the others are flagged: as racflow tune --accuracy finds it.", writer: elects, typ: 0.0, share: true, takes: []any{new(func(float64) float64)}, check: between},
	{name: "flagged", doc: "The share of the items that are flagged.", writer: elects, typ: 0.0, share: true},
	{name: "failed", doc: "The share of the items that failed.", typ: 0.0, share: true},
	{name: "answer", form: `answer("TEXT")`, doc: "What the pipeline answers to a text; empty: it has no answer.", writer: elects, typ: "", takes: []any{new(func(string) string)}, check: named("text")},
	{name: "found", form: `found("QUESTION", "PASSAGE", K)`, doc: "Whether a passage is among the first K (without it 20) that are found for a question: an entry's id, the path or the end of the path of its document, words that it holds, or the path with a quote, as guide.md\"the port is 8080\".", writer: retrieves, typ: false, takes: []any{new(func(string, string) bool), new(func(string, string, int) bool)}, check: searched},
	{name: "recall_at", form: "recall_at(K)", doc: "The mean share of an item's gold passages that are among the first K of the last search or reranking.", writer: retrieves, typ: 0.0, share: true, takes: []any{new(func(int) float64)}, check: positive},
	{name: "ndcg", doc: "nDCG@10 of the last search or reranking.", writer: retrieves, typ: 0.0, share: true},
	{name: "mrr", doc: "The mean of 1 / rank of the first gold passage in the last search or reranking.", writer: retrieves, typ: 0.0, share: true},
	{name: "cost_per_1000", doc: "What the answers to a thousand items cost, by the prices: also those that came from the response cache, at what they cost when they were made.", typ: 0.0},
	{name: "leaked", doc: "How many rows of the input with a label have a text that the knowledge has, case and spaces aside.", writer: retrieves, typ: 0.0},
	{name: lowName, form: "low(FIGURE)", doc: "The lower end of a figure's interval of 95 %, as in low(accuracy).", typ: 0.0, takes: []any{new(func(float64) float64)}},
	{name: highName, form: "high(FIGURE)", doc: "The upper end of a figure's interval of 95 %, as in high(flagged).", typ: 0.0, takes: []any{new(func(float64) float64)}},
}

// The functions whose argument is a figure, not a value.
const lowName, highName = "low", "high"

// figureNames returns the figures of a kind that are names.
func figureNames(kind Kind) (all []name) {
	for _, f := range figures {
		if kind == Expectation && f.form == "" {
			all = append(all, name{f.name, f.writer, f.typ, nil})
		}
	}
	return all
}

// docOf returns the documentation of a name that is a figure.
func docOf(name string, kind Kind) string {
	for _, f := range figures {
		if kind == Expectation && f.name == name {
			return f.doc
		}
	}
	return ""
}

// functionsOf returns a kind's own functions, which rules may call beside builtins.
func functionsOf(kind Kind) map[string]*figure {
	all := map[string]*figure{}
	for i, f := range figures {
		if kind == Expectation && f.form != "" {
			all[f.name] = &figures[i]
		}
	}
	return all
}

// declared returns the function's signature for type checks. The function is never called: figureAt replaces
// its calls.
func (f *figure) declared() *builtin.Function {
	return guard(f.name, nil, f.takes...)
}

func named(what string) func([]any) problem {
	return func(args []any) problem {
		if args[0] == "" {
			return problem{0, "Name the " + what + ": the text is empty."}
		}
		return problem{}
	}
}

func between(args []any) problem {
	if a := number(args[0]); !(a > 0 && a < 1) {
		return problem{0, "An accuracy that is promised is above 0 and below 1, such as 0.98."}
	}
	return problem{}
}

func positive(args []any) problem {
	if number(args[len(args)-1]) < 1 {
		return problem{len(args) - 1, "K is a whole number of at least 1."}
	}
	return problem{}
}

func searched(args []any) problem {
	for i, a := range args {
		if a == "" {
			return problem{i, "Name the " + []string{"question", "passage", "number"}[min(i, 2)] + ": the text is empty."}
		}
	}
	if len(args) > 2 {
		return positive(args)
	}
	return problem{}
}

func number(v any) float64 {
	switch v := v.(type) {
	case int:
		return float64(v)
	case float64:
		return v
	}
	return 0
}
