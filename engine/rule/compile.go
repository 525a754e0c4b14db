package rule

import (
	"errors"
	"fmt"
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

// Rule is a compiled rule. It may be evaluated by several goroutines at once.
type Rule struct {
	*program
	reads    map[string]bool
	mentions []func(string) bool
	figures  []Figure
	compared []Comparison
}

// program is what a rule, or the values of a filter, are compiled to.
type program struct {
	text string               // of the rule that it is of
	vars map[string]cty.Value // that the rule reads
	code *vm.Program          // nil for a filter, which has one per value
	uses []name               // whose values it needs
	idle sync.Pool            // of *evaluation
}

// Variables returns the variables that the rule reads as var.x, with the values that
// are part of it. The caller must not change it.
func (p *program) Variables() map[string]cty.Value { return p.vars }

// Text is the rule as it was written, escapes resolved.
func (r *Rule) Text() string { return r.text }

// Reads reports whether the rule mentions a name of Names. Further,
// "candidate_texts" tells whether it looks at the text or metadata of a
// candidate, which the engine otherwise does not fetch.
func (r *Rule) Reads(name string) bool { return r != nil && r.reads[name] }

// Compile checks and compiles a rule. It reports every name that is unknown or
// that nothing above writes, and otherwise the first problem.
func Compile(kind Kind, scope Scope, src Source) (*Rule, hcl.Diagnostics) {
	c := newCompiling(kind, scope, src)
	tree := c.check()
	if tree == nil {
		return nil, c.diags
	}
	mentions := c.mentionsOf(tree)
	compared := c.compared(tree.Node)
	code := c.compile(tree)
	if code == nil {
		return nil, c.diags
	}
	return &Rule{program: &program{text: src.Text, vars: c.vars, code: code, uses: c.uses}, reads: c.reads, mentions: mentions, figures: c.figures, compared: compared}, nil
}

// compiling is the work on one rule.
type compiling struct {
	kind    Kind
	scope   Scope
	src     Source
	names   []name // that it may use
	config  *conf.Config
	reads   map[string]bool
	vars    map[string]cty.Value // that it reads
	uses    []name               // that it does use
	called  map[string]*figure   // functions of the kind, beside builtins
	figures []Figure             // of an Expectation, each once
	diags   hcl.Diagnostics
}

func newCompiling(kind Kind, scope Scope, src Source) *compiling {
	c := &compiling{kind: kind, scope: scope, src: src, names: namesOf(kind), reads: map[string]bool{}, vars: map[string]cty.Value{}, called: functionsOf(kind)}
	c.config = c.newConfig()
	return c
}

// check returns the tree of a rule, or nil where there is a problem.
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

// checkTypes checks what every operator and function is given, and that the
// whole is true or false.
func (c *compiling) checkTypes(tree *parser.Tree) {
	if _, err := checker.Check(tree, c.config); err != nil {
		c.exprError(err, tree)
		return
	}
	if n := tree.Node.Nature(); !n.IsBool() && !n.IsUnknown(&c.config.NtCache) {
		c.errorAt(whole(c.src.Text), "A rule is true or false; this one gives %s. Compare it with something.", describe(n.String()))
	}
}

// compile bounds a checked tree and makes its program, or adds a problem.
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

// exprError adds an error of the expr library, in our words. tree is nil when
// the error is one of syntax.
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

// fieldAdvice lists the fields where a rule names an unknown one.
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

// whole is the place of the whole rule.
func whole(text string) file.Location {
	return file.Location{From: 0, To: len([]rune(text))}
}

// visit makes an ast.Visitor of a function.
type visit func(*ast.Node)

func (v visit) Visit(n *ast.Node) { v(n) }
