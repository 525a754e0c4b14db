package rule

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/optimizer"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// checkNames reports every name that the kind does not have or that nothing above writes. It
// records the other names as read.
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

// setVariables replaces each var.x in the tree by its value, so that it is type-checked like any
// other constant.
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
		c.vars[property.Value] = Plain(v)
		ast.Patch(n, node)
	}))
	ast.Walk(&tree.Node, visit(func(n *ast.Node) {
		if isName(*n, "var") && !done[*n] {
			c.errorAt((*n).Location(), "Name the variable: var.x.")
		}
	}))
}

// constant returns the node of a variable's value, or the reason why there is none.
func constant(v cty.Value) (node ast.Node, problem string) {
	if v = Plain(v); v.ContainsMarked() {
		return nil, "is a secret, or a value of the environment or of a file outside of the folder, and a rule, which is shown, cannot read one: give it with -var, or as RACFLOW_VAR_NAME of the environment"
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

// checkPatterns requires constant patterns: the size of a pattern limits how much text it may read.
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

// checkShape allows only flat lists. With lists of lists, a rule of a few lines could describe a
// value of exponential size.
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

// fieldsOf lists the fields of a record by their names in rules.
func fieldsOf(t reflect.Type) []string {
	var list []string
	for f := range t.Fields() {
		list = append(list, f.Tag.Get("expr"))
	}
	return list
}

// describe replaces Go types in messages of the expr library.
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

// Rule is a compiled rule. Several goroutines may evaluate it at the same time.
type Rule struct {
	*program
	reads    map[string]bool
	figures  []Figure
	compared []Comparison
}

// program is the compiled form of a rule, or of the values of a filter.
type program struct {
	text string               // of the rule or filter
	vars map[string]cty.Value // variables that the rule reads
	code *vm.Program          // nil for a filter, which has code for each value
	uses []name               // names whose values the rule needs
	idle sync.Pool            // of *evaluation
}

// Variables returns the variables that the rule reads as var.x, with the values compiled into the
// rule. The caller must not change the map.
func (p *program) Variables() map[string]cty.Value { return p.vars }

// Text returns the rule as written, with escapes resolved.
func (r *Rule) Text() string { return r.text }

// Reads reports whether the rule mentions a name of Names. "candidate_texts" asks whether the rule
// reads a candidate's text or metadata, which the engine otherwise does not fetch.
func (r *Rule) Reads(name string) bool { return r != nil && r.reads[name] }

// Compile checks and compiles a rule. It reports every name that is unknown or that nothing above
// writes. If there is none, it reports the problems of the first check that finds any.
func Compile(kind Kind, scope Scope, src Source) (*Rule, hcl.Diagnostics) {
	c := newCompiling(kind, scope, src)
	tree := c.check()
	if tree == nil {
		return nil, c.diags
	}
	compared := c.compared(tree.Node)
	code := c.compile(tree)
	if code == nil {
		return nil, c.diags
	}
	return &Rule{program: &program{text: src.Text, vars: c.vars, code: code, uses: c.uses}, reads: c.reads, figures: c.figures, compared: compared}, nil
}

// compiling is the state of compiling one rule.
type compiling struct {
	kind    Kind
	scope   Scope
	src     Source
	names   []name // names that the rule may use
	config  *conf.Config
	reads   map[string]bool
	vars    map[string]cty.Value // variables that the rule reads
	uses    []name               // names that the rule uses
	called  map[string]*figure   // the kind's own functions
	figures []Figure             // of an Expectation, each once
	diags   hcl.Diagnostics
}

func newCompiling(kind Kind, scope Scope, src Source) *compiling {
	c := &compiling{kind: kind, scope: scope, src: src, names: namesOf(kind), reads: map[string]bool{}, vars: map[string]cty.Value{}, called: functionsOf(kind)}
	c.config = c.newConfig()
	return c
}

// check parses and checks a rule; nil: the rule has a problem.
func (c *compiling) check() *parser.Tree {
	if len(c.src.Text) > MaxSource {
		c.errorAt(file.Location{}, "A rule has at most %d bytes, this one has %d.", MaxSource, len(c.src.Text))
		return nil
	}
	if strings.TrimSpace(c.src.Text) == "" {
		c.errorAt(file.Location{}, "The rule is empty. Leave the argument out, or write null, to have none.")
		return nil
	}
	tree, err := parser.ParseWithConfig(c.src.Text, c.config)
	if err != nil {
		c.exprError(err, nil)
		return nil
	}
	steps := []func(*parser.Tree){c.checkNames, c.setVariables, c.checkPatterns, c.checkCalls, c.checkTypes, c.checkShape, c.readFigures}
	for _, step := range steps {
		if step(tree); c.diags.HasErrors() {
			return nil
		}
	}
	return tree
}

func (c *compiling) newConfig() *conf.Config {
	config := conf.CreateNew()
	config.MaxNodes = maxNodes
	types := map[string]any{clockName: (*clock)(nil), labelsName: (*LabelSet)(nil), measuredName: Measured(nil)}
	for _, n := range c.names {
		types[n.name] = n.typ
	}
	config.WithEnv(types)
	for name := range config.Builtins {
		if !slices.Contains(builtins, name) {
			config.Disabled[name] = true
			delete(config.Builtins, name)
		}
	}
	for name, f := range guards {
		config.Functions[name] = f
	}
	for name, f := range c.called {
		config.Functions[name] = f.declared()
	}
	return config
}

// checkTypes checks the operands of operators, the arguments of functions, and that the rule itself
// is true or false.
func (c *compiling) checkTypes(tree *parser.Tree) {
	if _, err := checker.Check(tree, c.config); err != nil {
		c.exprError(err, tree)
		return
	}
	if n := tree.Node.Nature(); !n.IsBool() && !n.IsUnknown(&c.config.NtCache) {
		c.errorAt(whole(c.src.Text), "A rule is true or false; this one gives %s. Compare it with something.", describe(n.String()))
	}
}

// compile bounds a checked tree and compiles it, or adds a problem.
func (c *compiling) compile(tree *parser.Tree) *vm.Program {
	c.bound(tree)
	var code *vm.Program
	_, err := checker.Check(tree, c.config)
	if err == nil {
		err = optimizer.Optimize(&tree.Node, c.config)
	}
	if err == nil {
		code, err = compiler.Compile(tree, c.config)
	}
	if err != nil {
		c.exprError(err, tree)
		return nil
	}
	return code
}

// errorAt adds a diagnostic at a place in the rule.
func (c *compiling) errorAt(at file.Location, format string, args ...any) {
	c.say(hcl.DiagError, "Invalid rule", at, fmt.Sprintf(format, args...))
}

func (c *compiling) say(severity hcl.DiagnosticSeverity, summary string, at file.Location, detail string) {
	if len(c.diags) >= maxFaults {
		return
	}
	whole := c.src.Range(0, len(c.src.Text))
	subject := c.src.Range(at.From, at.To)
	if at.To == 0 {
		subject = whole
	}
	c.diags = append(c.diags, &hcl.Diagnostic{Severity: severity, Summary: summary, Detail: detail, Subject: &subject, Context: &whole})
}

// exprError adds an error of the expr library, reworded. tree is nil for a syntax error.
func (c *compiling) exprError(err error, tree *parser.Tree) {
	var f *file.Error
	if !errors.As(err, &f) {
		c.errorAt(whole(c.src.Text), "%s.", describe(err.Error()))
		return
	}
	at := f.Location
	if at.To <= at.From {
		at.To = at.From + 1
	}
	if tree != nil {
		if advice := c.fieldAdvice(tree, f); advice != "" {
			c.errorAt(at, "%s", advice)
			return
		}
	}
	message := strings.TrimSpace(describe(f.Message))
	c.errorAt(at, "%s.", capital(message))
}

// fieldAdvice lists the fields of a record if a rule names an unknown field.
func (c *compiling) fieldAdvice(tree *parser.Tree, f *file.Error) string {
	var advice string
	ast.Walk(&tree.Node, visit(func(n *ast.Node) {
		m, ok := (*n).(*ast.MemberNode)
		if !ok || m.Location() != f.Location {
			return
		}
		field, ok := m.Property.(*ast.StringNode)
		base := m.Node.Nature().Deref(&c.config.NtCache)
		if !ok || !base.IsStruct() {
			return
		}
		fields := fieldsOf(base.Type)
		advice = fmt.Sprintf("There is no %q in %s, only %s.%s", field.Value, describe(base.String()),
			strings.Join(fields, ", "), DidYouMean(field.Value, fields))
	}))
	return advice
}

// whole returns the location of the whole rule.
func whole(text string) file.Location {
	return file.Location{From: 0, To: len([]rune(text))}
}

// visit makes a function an ast.Visitor.
type visit func(*ast.Node)

func (v visit) Visit(n *ast.Node) { v(n) }
