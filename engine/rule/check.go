package rule

import (
	"reflect"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/zclconf/go-cty/cty"
)

// checkNames finds every name that is not one of the kind's or that nothing
// above writes, and notes the others as read.
func (c *compiling) checkNames(tree *parser.Tree) {
	functions := map[ast.Node]bool{} // identifiers that are called
	local := map[string]bool{}       // let x = ...
	ast.Walk(&tree.Node, visit(func(n *ast.Node) {
		switch n := (*n).(type) {
		case *ast.VariableDeclaratorNode:
			local[n.Name] = true
		case *ast.CallNode:
			functions[n.Callee] = true
			if id, ok := n.Callee.(*ast.IdentifierNode); ok && c.called[id.Value] != nil {
				c.readFunction(id.Location(), c.called[id.Value])
			} else {
				c.refuseCall(n.Callee)
			}
		case *ast.BuiltinNode:
			if !slices.Contains(builtins, n.Name) {
				c.unknownFunction(n.Location(), n.Name)
			}
		}
	}))
	ast.Walk(&tree.Node, visit(func(n *ast.Node) {
		switch n := (*n).(type) {
		case *ast.IdentifierNode:
			if !functions[n] && !local[n.Value] {
				c.readName(n.Location(), n.Value)
			}
		case *ast.MemberNode:
			if p, ok := n.Property.(*ast.StringNode); ok && (p.Value == "text" || p.Value == "meta") && !isName(n.Node, "item") {
				c.reads["candidate_texts"] = true
			}
		}
	}))
	if c.reads["text"] || c.reads["meta"] {
		c.reads["candidate_texts"] = true
	}
}

func (c *compiling) readName(at file.Location, given string) {
	if c.reads[given] || given == "var" {
		c.reads[given] = true
		return
	}
	i := slices.IndexFunc(c.names, func(n name) bool { return n.name == given })
	if i < 0 {
		known := Names(c.kind)
		for _, f := range Functions(c.kind) {
			if f.Form != "" {
				known = append(known, f.Form)
			}
		}
		if advice := DidYouMean(given, known); advice != "" {
			c.errorAt(at, "There is no %q here.%s", given, advice)
		} else {
			c.errorAt(at, "There is no %q here; a rule in this place sees %s.", given, strings.Join(known, ", "))
		}
		return
	}
	if ok, needs := c.scope.written(c.names[i]); !ok {
		c.unwritten(at, given, needs)
		return
	}
	c.reads[given] = true
	if c.names[i].value != nil {
		c.uses = append(c.uses, c.names[i])
	}
}

func (c *compiling) unwritten(at file.Location, given, needs string) {
	if c.kind == Expectation {
		c.errorAt(at, "Nothing measures %q: the pipeline needs %s.", given, needs)
		return
	}
	c.errorAt(at, "Nothing above writes %q: it needs %s above.", given, needs)
}

func (c *compiling) refuseCall(callee ast.Node) {
	if id, ok := callee.(*ast.IdentifierNode); ok {
		c.unknownFunction(id.Location(), id.Value)
		return
	}
	c.errorAt(callee.Location(), "Only functions can be called: %s.", strings.Join(c.callable(), ", "))
}

func (c *compiling) unknownFunction(at file.Location, given string) {
	if at.To <= at.From {
		at.To = at.From + len([]rune(given))
	}
	if advice := DidYouMean(given, c.callable()); advice != "" {
		c.errorAt(at, "There is no function %q.%s", given, advice)
		return
	}
	c.errorAt(at, "There is no function %q in rules; there are %s.", given, strings.Join(c.callable(), ", "))
}

// setVariables writes the value of each var.x into the tree, so that it is
// type-checked like any other constant.
func (c *compiling) setVariables(tree *parser.Tree) {
	if !c.reads["var"] {
		return
	}
	done := map[ast.Node]bool{}
	ast.Walk(&tree.Node, visit(func(n *ast.Node) {
		m, ok := (*n).(*ast.MemberNode)
		if !ok || !isName(m.Node, "var") {
			return
		}
		done[m.Node] = true
		property, ok := m.Property.(*ast.StringNode)
		if !ok {
			c.errorAt(m.Location(), "Name the variable: var.x.")
			return
		}
		v, ok := c.scope.Vars[property.Value]
		if !ok {
			c.errorAt(m.Location(), "There is no variable %q.%s", property.Value, DidYouMean(property.Value, keys(c.scope.Vars)))
			return
		}
		node, problem := constant(v)
		if problem != "" {
			c.errorAt(m.Location(), "The variable %q %s.", property.Value, problem)
			return
		}
		c.vars[property.Value] = v
		ast.Patch(n, node)
	}))
	ast.Walk(&tree.Node, visit(func(n *ast.Node) {
		if isName(*n, "var") && !done[*n] {
			c.errorAt((*n).Location(), "Name the variable: var.x.")
		}
	}))
}

// constant is the node of a variable's value, or what is wrong with it.
func constant(v cty.Value) (node ast.Node, problem string) {
	if v.ContainsMarked() {
		return nil, "is a secret, and a rule cannot read one"
	}
	if v.IsNull() || !v.IsWhollyKnown() {
		return nil, "has no value"
	}
	switch t := v.Type(); {
	case t == cty.String:
		return &ast.StringNode{Value: v.AsString()}, ""
	case t == cty.Bool:
		return &ast.BoolNode{Value: v.True()}, ""
	case t == cty.Number:
		f := v.AsBigFloat()
		if i, exact := f.Int64(); exact == 0 && f.IsInt() {
			return &ast.IntegerNode{Value: int(i)}, ""
		}
		value, _ := f.Float64()
		return &ast.FloatNode{Value: value}, ""
	case t.IsListType() || t.IsSetType() || t.IsTupleType():
		list := &ast.ArrayNode{}
		for it := v.ElementIterator(); it.Next(); {
			_, element := it.Element()
			n, problem := constant(element)
			if problem != "" {
				return nil, problem
			}
			list.Nodes = append(list.Nodes, n)
		}
		return list, ""
	}
	return nil, "is neither a text, a number, a bool nor a list of those"
}

// checkPatterns asks for patterns that are known now: their size bounds what
// they may read.
func (c *compiling) checkPatterns(tree *parser.Tree) {
	program := 0
	ast.Walk(&tree.Node, visit(func(n *ast.Node) {
		b, ok := (*n).(*ast.BinaryNode)
		if !ok || b.Operator != "matches" {
			return
		}
		text, ok := b.Right.(*ast.StringNode)
		if !ok {
			c.errorAt(b.Right.Location(), "The pattern of matches is written out as a text.")
			return
		}
		size, err := PatternSize(text.Value)
		if err != nil {
			c.errorAt(b.Right.Location(), "The pattern cannot be read: %v.", err)
		} else if program += size; program > maxProgram {
			c.errorAt(b.Right.Location(), "The pattern is too large. Repeat less, and name fewer classes of letters.")
		}
	}))
}

// checkShape keeps lists flat: lists of lists would let a rule of a few lines
// describe a value of exponential size.
func (c *compiling) checkShape(tree *parser.Tree) {
	flat := func(nodes ...ast.Node) {
		for _, n := range nodes {
			if p, ok := n.(*ast.PredicateNode); ok {
				n = p.Node
			}
			t := n.Nature()
			if !t.IsBool() && !t.IsNumber() && !t.IsString() && !t.Nil && !t.IsUnknown(&c.config.NtCache) {
				c.errorAt(n.Location(), "Only a text, a number or a bool can stand here, not %s.", describe(t.String()))
			}
		}
	}
	ast.Walk(&tree.Node, visit(func(n *ast.Node) {
		switch n := (*n).(type) {
		case *ast.ArrayNode:
			flat(n.Nodes...)
		case *ast.ConditionalNode:
			flat(n.Exp1, n.Exp2)
		case *ast.BuiltinNode:
			if n.Name == "map" {
				flat(n.Arguments[1])
			}
		case *ast.MapNode:
			c.errorAt(n.Location(), "A rule cannot make a map.")
		case *ast.BinaryNode:
			switch n.Operator {
			case "??":
				flat(n.Left, n.Right)
			case "..":
				c.errorAt(n.Location(), "A rule cannot make a range. Compare instead, such as x >= 1 and x <= 5.")
			}
		}
	}))
}

func isName(n ast.Node, name string) bool {
	id, ok := n.(*ast.IdentifierNode)
	return ok && id.Value == name
}

func keys(m map[string]cty.Value) []string {
	var list []string
	for k := range m {
		list = append(list, k)
	}
	return list
}

// fieldsOf lists the fields of a record as rules name them.
func fieldsOf(t reflect.Type) []string {
	var list []string
	for f := range t.Fields() {
		list = append(list, f.Tag.Get("expr"))
	}
	return list
}

// describe replaces the Go types in a message of the expr library.
var describe = strings.NewReplacer(
	"[]*rule.candidate", "a list of candidates", "*rule.candidate", "a candidate", "rule.candidate", "a candidate",
	"*rule.item", "the item", "rule.item", "the item",
	"*rule.Extent", "the knowledge", "rule.Extent", "the knowledge",
	"[]rule.Vote", "a list of votes", "rule.Vote", "a vote",
	"[]string", "a list of texts", "[]interface {}", "a list", "[]float64", "a list of numbers",
	"map[string]interface {}", "a map", "interface {}", "any value",
	"float64", "a number", "type string", "type text", "bool", "a bool",
	"unexpected token EOF", "the rule ends too early",
	`unexpected token Operator("=")`, "to compare, write == instead of =",
).Replace
