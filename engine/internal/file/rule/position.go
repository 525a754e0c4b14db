package rule

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/sdk"
)

// Source is the text of a rule and its place in the file.
type Source struct {
	Text string
	// Range returns where the file has the runes from..to of Text.
	Range func(from, to int) hcl.Range
}

// NewSource reads a rule from its HCL expression. file is the whole HCL file; ctx evaluates an
// expression that is not a plain string.
//
// Positions are exact for quoted strings, whose quotes and backslashes may be escaped, and for heredocs,
// including indented ones. For any other text and expression, such as local.rule, every position is the
// whole expression.
func NewSource(file []byte, e hcl.Expression, ctx *hcl.EvalContext) (Source, hcl.Diagnostics) {
	if diags := refuseTemplate(e); diags.HasErrors() {
		return Source{}, diags
	}
	fail := func(detail string) (Source, hcl.Diagnostics) {
		return Source{}, hcl.Diagnostics{{
			Severity: hcl.DiagError, Summary: "Invalid rule", Detail: detail, Subject: e.Range().Ptr(),
		}}
	}
	v, diags := e.Value(ctx)
	v = Plain(v)
	switch {
	case diags.HasErrors():
		return Source{}, diags
	case v.IsMarked():
		return fail("A rule is shown, so it cannot be made from a secret, a value of the environment or a file outside of the folder. Declare a variable for it, and give that with -var or as RACFLOW_VAR_NAME of the environment.")
	case v.IsNull() || !v.IsKnown() || v.Type() != cty.String:
		return fail(`A rule is a text, such as "margin < 0.1".`)
	}
	return Source{v.AsString(), ranges(file, e, v.AsString())}, nil
}

// Open is a mark of values that may be shown.
type Open interface{ Open() }

// Plain returns a value without its marks, if all marks are Open.
func Plain(v cty.Value) cty.Value {
	bare, marks := v.UnmarkDeep()
	for m := range marks {
		if _, open := m.(Open); !open {
			return v
		}
	}
	return bare
}

// refuseTemplate rejects ${ and %{ in a rule. The rule is compiled once, and a value inserted into its
// text could change its meaning.
func refuseTemplate(e hcl.Expression) hcl.Diagnostics {
	var inserted hcl.Expression
	switch t := literal(e).(type) {
	case *hclsyntax.TemplateWrapExpr:
		inserted = t
	case *hclsyntax.TemplateExpr:
		for _, part := range t.Parts {
			if _, ok := part.(*hclsyntax.LiteralValueExpr); !ok {
				inserted = part
				break
			}
		}
	}
	if inserted == nil {
		return nil
	}
	return hcl.Diagnostics{{
		Severity: hcl.DiagError,
		Summary:  "Template sequence in a rule",
		Detail: "A rule is not a template: ${ and %{ have no meaning in it. " +
			"Write the name of a variable plainly, such as var.x; the rule sees its value.",
		Subject: inserted.Range().Ptr(),
		Context: e.Range().Ptr(),
	}}
}

// literal removes parentheses.
func literal(e hcl.Expression) hcl.Expression {
	for {
		p, ok := e.(*hclsyntax.ParenthesesExpr)
		if !ok {
			return e
		}
		e = p.Expression
	}
}

func ranges(file []byte, e hcl.Expression, text string) func(from, to int) hcl.Range {
	whole := e.Range()
	offsets := offsets(file, e, text)
	if offsets == nil {
		return func(int, int) hcl.Range { return whole }
	}
	position := func(offset int) hcl.Pos {
		all := func(data []byte, _ bool) (int, []byte, error) { return len(data), data, nil }
		scanner := hcl.NewRangeScannerFragment(file[:offset], whole.Filename, whole.Start, all)
		scanner.Scan() // there is at least the quote
		return scanner.Range().End
	}
	last := len(offsets) - 1
	return func(from, to int) hcl.Range {
		from = min(max(from, 0), last)
		to = min(max(to, from+1), last)
		return hcl.Range{Filename: whole.Filename, Start: position(offsets[from]), End: position(offsets[to])}
	}
}

// offsets returns, for each rune of text and for its end, its offset in the file; nil: the file does not
// contain text nearly literally.
func offsets(file []byte, e hcl.Expression, text string) (all []int) {
	t, ok := literal(e).(*hclsyntax.TemplateExpr)
	if !ok || text == "" || !t.IsStringLiteral() || !t.Parts[0].Range().CanSliceBytes(file) {
		return nil
	}
	at := t.Parts[0].Range().Start.Byte
	quoted := file[at-1] == '"'
	written := strings.SplitAfter(string(t.Parts[0].Range().SliceBytes(file)), "\n")
	lines := strings.SplitAfter(text, "\n")
	if len(lines) != len(written) {
		return nil
	}
	for i, line := range lines {
		next := 0
		if !quoted { // HCL has removed the indentation
			next = max(0, len(written[i])-len(line))
		}
		for _, r := range line {
			all = append(all, at+next)
			if quoted && (r == '"' || r == '\\') {
				next++ // behind the backslash
			}
			if !strings.HasPrefix(written[i][min(next, len(written[i])):], string(r)) {
				return nil
			}
			next += utf8.RuneLen(r)
		}
		at += len(written[i])
	}
	return append(all, at)
}

// splitting splits a filter into the part that the store evaluates and the values to compare with.
type splitting struct {
	*compiling
	source file.Source
	fixed  *evaluation // computes the values that do not depend on the item
}

// comparisons maps the operators of a filter to its operations, also with swapped sides; 0: the sides
// cannot be swapped.
var comparisons = map[string]struct{ op, flipped sdk.FilterOp }{
	"==":         {sdk.FilterIn, sdk.FilterIn},
	"!=":         {sdk.FilterIn, sdk.FilterIn}, // under a not
	"<":          {sdk.FilterLess, sdk.FilterGreater},
	"<=":         {sdk.FilterLessEqual, sdk.FilterGreaterEqual},
	">":          {sdk.FilterGreater, sdk.FilterLess},
	">=":         {sdk.FilterGreaterEqual, sdk.FilterLessEqual},
	"in":         {sdk.FilterIn, 0},
	"startsWith": {sdk.FilterPrefix, 0},
}

// writable describes the form of a filter, for errors.
const writable = "A filter compares id, label or meta.KEY, as they are, with a value of the file or of the item " +
	"(==, !=, <, <=, >, >=, in, not in, startsWith), and joins comparisons by and, or, not."

// part converts a node to a part of a filter.
func (s *splitting) part(n ast.Node) part {
	switch n := n.(type) {
	case *ast.UnaryNode:
		if n.Operator == "not" || n.Operator == "!" {
			return part{op: sdk.FilterNot, parts: []part{s.part(n.Node)}}
		}
	case *ast.BinaryNode:
		switch n.Operator {
		case "and", "&&":
			return s.join(sdk.FilterAnd, n)
		case "or", "||":
			return s.join(sdk.FilterOr, n)
		}
	}
	if !ofEntry(n) {
		return s.compared(part{}, n)
	}
	switch n := n.(type) {
	case *ast.BinaryNode:
		if _, ok := comparisons[n.Operator]; !ok {
			s.errorAt(n.Location(), "A filter has no %q for the fields of an entry. %s What has been found can be narrowed further by keep.", n.Operator, writable)
			return part{}
		}
		return s.comparison(n)
	case *ast.MemberNode, *ast.ChainNode, *ast.IdentifierNode:
		p := s.field(n)
		p.op = sdk.FilterIn
		return s.given(p, n, true)
	}
	s.errorAt(place(n), "%s What has been found can be narrowed further by keep.", writable)
	return part{}
}

// join combines two parts. It merges nested parts of the same operation, so that only real nesting counts
// as depth.
func (s *splitting) join(op sdk.FilterOp, n *ast.BinaryNode) part {
	joined := part{op: op}
	for _, p := range []part{s.part(n.Left), s.part(n.Right)} {
		if p.op == op {
			joined.parts = append(joined.parts, p.parts...)
		} else {
			joined.parts = append(joined.parts, p)
		}
	}
	return joined
}

func (s *splitting) comparison(n *ast.BinaryNode) part {
	field, value, op := n.Left, n.Right, comparisons[n.Operator].op
	switch {
	case ofEntry(n.Left) && ofEntry(n.Right):
		s.errorAt(n.Location(), "A filter cannot compare an entry with itself. %s", writable)
		return part{}
	case ofEntry(n.Right):
		field, value, op = value, field, comparisons[n.Operator].flipped
	}
	if op == 0 {
		s.errorAt(n.Location(), "The entry's field stands on the left of %s, and the value on the right: label in [\"a\", \"b\"], id startsWith \"faq-\".", n.Operator)
		return part{}
	}
	if _, ok := value.(*ast.NilNode); ok {
		s.errorAt(place(value), "A filter cannot ask for what is missing: an entry without the metadata fits no comparison, and so fits its not.")
		return part{}
	}
	p := s.field(field)
	p.op, p.list = op, n.Operator == "in"
	p = s.compared(p, value)
	if n.Operator == "!=" {
		return part{op: sdk.FilterNot, parts: []part{p}}
	}
	return p
}

// field returns a part with only its field and key set.
func (s *splitting) field(n ast.Node) part {
	if chain, ok := n.(*ast.ChainNode); ok {
		n = chain.Node
	}
	switch n := n.(type) {
	case *ast.IdentifierNode:
		switch n.Value {
		case "id":
			return part{field: sdk.FieldID}
		case "label":
			return part{field: sdk.FieldLabel}
		}
		s.errorAt(place(n), "Name the metadata: meta.lang or meta[\"any key\"].")
	case *ast.MemberNode:
		key, ok := n.Property.(*ast.StringNode)
		switch {
		case isName(n.Node, "meta") && ok:
			return part{field: sdk.FieldMeta, key: key.Value}
		case isName(n.Node, "meta"):
			s.errorAt(place(n), "Write the key of the metadata out: meta.lang or meta[\"any key\"].")
		default:
			s.errorAt(place(n), "Metadata are texts, numbers and bools, which have no parts. %s", writable)
		}
	default:
		s.errorAt(place(n), "%s What has been found can be narrowed further by keep.", writable)
	}
	return part{}
}

// compared sets the value of a comparison.
func (s *splitting) compared(p part, n ast.Node) part {
	perItem := names(n, "item")
	code := s.compile(&parser.Tree{Node: n, Source: s.source})
	if code == nil || perItem {
		p.operand.code = code
		return p
	}
	v, err := s.fixed.vm.Run(code, s.fixed.values)
	if err != nil {
		s.exprError(err, nil)
		return p
	}
	return s.given(p, n, v)
}

// given sets a value that is known now, and checks the comparison.
func (s *splitting) given(p part, n ast.Node, v any) part {
	p.operand.value = v
	f, err := p.leaf(v, false)
	if faulty := p.op != 0 && p.field == 0; err != nil && !faulty {
		s.errorAt(place(n), "%s.", capital(err.Error()))
	}
	if s.scope.Texts && f.Field == sdk.FieldMeta && !slices.ContainsFunc(f.Values, isText) {
		s.say(hcl.DiagWarning, "Comparison that never fits", place(n),
			fmt.Sprintf("The metadata of a TSV or CSV file are texts, and %v is none: no entry fits. "+
				"Compare with a text, such as meta.public == 'true' or meta.year >= '2020'; texts are compared letter by letter.", f.Values[0]))
	}
	return p
}

func isText(v any) bool {
	_, ok := v.(string)
	return ok
}

// ofEntry reports whether a node reads a field of the entry.
func ofEntry(n ast.Node) bool { return names(n, "id", "label", "meta") }

func names(n ast.Node, given ...string) bool {
	found := false
	ast.Walk(&n, visit(func(n *ast.Node) {
		id, ok := (*n).(*ast.IdentifierNode)
		found = found || ok && slices.Contains(given, id.Value)
	}))
	return found
}

// place returns a node's location, at least one rune long.
func place(n ast.Node) file.Location {
	at := n.Location()
	if at.To <= at.From {
		at.To = at.From + 1
	}
	return at
}
