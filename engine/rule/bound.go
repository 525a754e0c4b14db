package rule

import (
	"reflect"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/parser"
)

// Names that only the tree contains: no rule can be written with them, for
// checkNames knows none of them.
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

// guards are the functions that bound writes into the tree.
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

// bound rewrites a checked tree so that its evaluation is bounded, and so that
// `x in labels` looks into the set.
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
					return // checkPatterns has refused it
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
