package rule

import (
	"context"
	"fmt"
	"reflect"
	"regexp"
	"regexp/syntax"
	"time"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm/runtime"
)

// Names that only compiled trees contain. checkNames does not know them, so no rule can use them.
const (
	clockName  = "__clock"
	labelsName = "__labels"
	tickName   = "__tick"
	joinName   = "__join"
	matchName  = "__match"
	hasName    = "__has"

	measuredName = "__measured"
	numberName   = "__number"
	textName     = "__text"
	truthName    = "__truth"
	limitName    = "__limit"
)

// guards holds the functions that bound writes into the tree.
var guards = map[string]*builtin.Function{
	tickName: guard(tickName, func(args ...any) (any, error) {
		return true, args[0].(*clock).tick()
	}, new(func(*clock) bool)),
	joinName: guard(joinName, func(args ...any) (any, error) {
		return args[0].(*clock).join(args[1], args[2])
	}, new(func(*clock, string, string) string), new(func(*clock, any, any) any)),
	matchName: guard(matchName, func(args ...any) (any, error) {
		return args[0].(*pattern).match(args[1])
	}, new(func(*pattern, string) bool)),
	hasName: guard(hasName, func(args ...any) (any, error) {
		label, ok := args[1].(string)
		return ok && args[0].(*LabelSet).Has(label), nil
	}, new(func(*LabelSet, string) bool)),
	numberName: guard(numberName, func(args ...any) (any, error) {
		return args[0].(Measured)[args[1].(string)].Number, nil
	}, new(func(Measured, string) float64)),
	textName: guard(textName, func(args ...any) (any, error) {
		return args[0].(Measured)[args[1].(string)].Text, nil
	}, new(func(Measured, string) string)),
	truthName: guard(truthName, func(args ...any) (any, error) {
		return args[0].(Measured)[args[1].(string)].Truth, nil
	}, new(func(Measured, string) bool)),
	limitName: guard(limitName, func(args ...any) (any, error) {
		return args[0].(Measured)[args[1].(string)].limit(args[2].(string)), nil
	}, new(func(Measured, string, string) float64)),
}

func guard(name string, f func(...any) (any, error), signatures ...any) *builtin.Function {
	types := make([]reflect.Type, len(signatures))
	for i, s := range signatures {
		types[i] = reflect.TypeOf(s).Elem()
	}
	return &builtin.Function{Name: name, Func: f, Types: types}
}

// bound rewrites a checked tree so that its evaluation is bounded and `x in labels` is a lookup in
// a set.
func (c *compiling) bound(tree *parser.Tree) {
	ast.Walk(&tree.Node, visit(func(n *ast.Node) {
		if patched := c.figureAt(*n); patched != nil {
			ast.Patch(n, patched)
			return
		}
		switch node := (*n).(type) {
		case *ast.PredicateNode:
			node.Node = &ast.SequenceNode{Nodes: []ast.Node{call(tickName, hidden(clockName)), node.Node}}
		case *ast.BinaryNode:
			switch {
			case node.Operator == "+" && !(node.Left.Nature().IsNumber() && node.Right.Nature().IsNumber()):
				ast.Patch(n, call(joinName, hidden(clockName), node.Left, node.Right))
			case node.Operator == "in" && isName(node.Right, "labels"):
				ast.Patch(n, call(hasName, hidden(labelsName), node.Left))
			case node.Operator == "matches":
				p, err := newPattern(node.Right.(*ast.StringNode).Value)
				if err != nil {
					return // checkPatterns has rejected it
				}
				ast.Patch(n, call(matchName, &ast.ConstantNode{Value: p}, node.Left))
			}
		}
	}))
}

func hidden(name string) ast.Node { return &ast.IdentifierNode{Value: name} }

func call(function string, args ...ast.Node) ast.Node {
	return &ast.CallNode{Callee: hidden(function), Arguments: args}
}

// MaxSource is the maximum number of bytes of a rule, or of a pattern. It also bounds nesting, and
// thus the parser's stack.
const MaxSource = 4 << 10

// The other bounds of a rule. Rules that people write by hand stay below them.
const (
	maxNodes   = 1000    // of the syntax tree
	maxMemory  = 1 << 20 // elements of the lists that one evaluation creates
	maxText    = 1 << 20 // bytes of the texts that one evaluation joins
	maxPattern = 4 << 20 // instructions of a pattern × bytes of its input
	maxProgram = 10_000  // instructions of all patterns of a rule
	maxFaults  = 20      // reported errors per rule
	maxTime    = 50 * time.Millisecond
	tickEvery  = 16 // predicates between two checks of the clock
)

// clock bounds one evaluation. Loops exist only as predicates (all, filter, ...). Each predicate
// ticks the clock before its body runs; see bound.
type clock struct {
	ctx      context.Context
	deadline time.Time
	ticks    uint
	text     int
}

func (c *clock) tick() error {
	c.ticks++
	if c.ticks%tickEvery != 0 {
		return nil
	}
	if c.deadline.IsZero() { // a rule with few iterations never reads the clock
		c.deadline = time.Now().Add(maxTime)
		return nil
	}
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if time.Now().After(c.deadline) {
		return fmt.Errorf("it ran for more than %v; nest fewer loops", maxTime)
	}
	return nil
}

// join implements + for values that may not be numbers when the rule is compiled. In a loop, joined
// texts would double each time.
func (c *clock) join(a, b any) (any, error) {
	if x, ok := a.(string); ok {
		if y, ok := b.(string); ok {
			if c.text += len(x) + len(y); c.text > maxText {
				return nil, fmt.Errorf("it joined more than %d KiB of text", maxText>>10)
			}
		}
	}
	return runtime.Add(a, b), nil
}

// pattern is a regular expression with its size. RE2 takes time linear in size × input, so a bound
// on that product bounds the time.
type pattern struct {
	re   *regexp.Regexp
	size int
}

// PatternSize returns an upper bound on the instructions of a compiled regular expression. Unlike
// compilation, this takes little time and memory.
func PatternSize(text string) (int, error) {
	if len(text) > MaxSource {
		return 1 << 40, nil
	}
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0, err
	}
	return instructions(re), nil
}

func instructions(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1) // each is at most 1000, also nested ones together
	}
	return n
}

func newPattern(text string) (*pattern, error) {
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	return &pattern{re, len(prog.Inst)}, nil
}

func (p *pattern) match(v any) (bool, error) {
	text, ok := v.(string)
	switch {
	case v == nil:
		return false, nil
	case !ok:
		return false, fmt.Errorf("matches needs a text, this is a %T", v)
	case len(text)*p.size > maxPattern:
		return false, fmt.Errorf("the text of %d bytes is too long for this pattern, which reads at most %d",
			len(text), maxPattern/p.size)
	}
	return p.re.MatchString(text), nil
}

// builtins lists the functions that rules may use: pure functions that a predicate needs, of at
// most linear cost. Functions that loop take a predicate, and so tick the clock. Omitted on
// purpose: functions that make long texts or nested lists (repeat, replace, join, split, concat,
// toJSON, reduce, groupBy, ...), functions that take more than linear time (sort, uniq), and
// functions that depend on more than their arguments (now).
var builtins = []string{
	"all", "any", "none", "one", "count", "filter", "map", "find", "findIndex", "findLast", "findLastIndex", "sum",
	"len", "first", "last", "mean", "min", "max",
	"abs", "ceil", "floor", "round", "int", "float",
	"trim", "trimPrefix", "trimSuffix", "upper", "lower", "indexOf", "lastIndexOf", "hasPrefix", "hasSuffix",
}
