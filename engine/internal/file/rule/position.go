package rule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/apparentlymart/go-textseg/v15/textseg"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/sdk"
)

// Source is the text of a rule and where it stands in its file.
type Source struct {
	Text string
	// Range returns where the file has the runes from..to of Text.
	Range func(from, to int) hcl.Range
}

// NewSource reads a rule from its HCL expression. file is the whole HCL file; ctx evaluates an
// expression that is not a plain string.
//
// Positions are exact for quoted strings, with escapes, and for heredocs, also indented ones. For
// any other expression, such as local.rule, every position is the whole expression.
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
	switch {
	case diags.HasErrors():
		return Source{}, diags
	case v.IsMarked():
		return fail("A rule cannot be made from a secret.")
	case v.IsNull() || !v.IsKnown() || v.Type() != cty.String:
		return fail(`A rule is a text, such as "margin < 0.1".`)
	}
	return Source{v.AsString(), ranges(file, e, v.AsString())}, nil
}

// refuseTemplate rejects ${ and %{ in a rule: the rule is compiled once, and a
// value pasted into its text could change its meaning.
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
	offsets, ok := offsets(file, literal(e).Range(), text)
	if !ok {
		return func(int, int) hcl.Range { return whole }
	}
	places := sync.OnceValue(func() []hcl.Pos { return positions(file, whole.Start, offsets) })
	last := len(offsets) - 1
	return func(from, to int) hcl.Range {
		from = min(max(from, 0), last)
		to = min(max(to, from+1), last)
		return hcl.Range{Filename: whole.Filename, Start: places()[from], End: places()[to]}
	}
}

// positions walks from a known place to ascending byte offsets, and counts columns in grapheme
// clusters, as HCL does.
func positions(file []byte, at hcl.Pos, offsets []int) []hcl.Pos {
	all := make([]hcl.Pos, 0, len(offsets))
	after := at // the end of the cluster that begins at `at`
	for _, offset := range offsets {
		for after.Byte <= offset && after.Byte < len(file) {
			at = after
			n, cluster, _ := textseg.ScanGraphemeClusters(file[at.Byte:], true)
			after.Byte += n
			if after.Column++; cluster[0] == '\n' || cluster[0] == '\r' {
				after.Line, after.Column = after.Line+1, 1
			}
		}
		p := at
		if offset > at.Byte {
			p.Byte, p.Column = offset, at.Column+1
		}
		if offset >= after.Byte {
			p = after
		}
		all = append(all, p)
	}
	return all
}

// offsets returns, for each rune of text and for its end, its offset in the file. It reports false
// if text does not come from a literal that it can read.
func offsets(file []byte, r hcl.Range, text string) ([]int, bool) {
	if !r.CanSliceBytes(file) {
		return nil, false
	}
	// The lexer finds the closing marker of a heredoc only before a line break.
	tokens, _ := hclsyntax.LexExpression(append(r.SliceBytes(file)[:r.End.Byte-r.Start.Byte:r.End.Byte-r.Start.Byte], '\n'), r.Filename, r.Start)
	var u unescaper
	heredoc, end := false, r.End.Byte
	for _, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenOHeredoc:
			heredoc = true
		case hclsyntax.TokenQuotedLit, hclsyntax.TokenStringLit:
			u.read(t.Bytes, t.Range.Start.Byte, !heredoc)
		case hclsyntax.TokenCQuote, hclsyntax.TokenCHeredoc:
			end = t.Range.Start.Byte
		}
	}
	if heredoc {
		u.outdent(text)
	}
	return append(u.offsets, end), string(u.runes) == text
}

// unescaper decodes a string literal as HCL does and records the offset of each rune.
type unescaper struct {
	runes   []rune
	offsets []int
}

var escapes = map[byte]rune{'n': '\n', 't': '\t', 'r': '\r', '"': '"', '\\': '\\'}

func (u *unescaper) read(b []byte, offset int, quoted bool) {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		switch {
		case quoted && r == '\\' && i+1 < len(b):
			r, n = unescape(b[i:])
		case (r == '$' || r == '%') && i+2 < len(b) && rune(b[i+1]) == r && b[i+2] == '{':
			n = 2 // $${ is written for ${
		}
		u.runes = append(u.runes, r)
		u.offsets = append(u.offsets, offset+i)
		i += n
	}
}

func unescape(b []byte) (r rune, n int) {
	digits := map[byte]int{'u': 4, 'U': 8}[b[1]]
	if digits == 0 || len(b) < 2+digits {
		return escapes[b[1]], 2
	}
	code, err := strconv.ParseUint(string(b[2:2+digits]), 16, 32)
	if err != nil {
		return utf8.RuneError, 2
	}
	return rune(code), 2 + digits
}

// outdent removes the indentation that HCL removed from a heredoc: the part of each line that is
// missing in text.
func (u *unescaper) outdent(text string) {
	want := strings.Split(text, "\n")
	var runes []rune
	var offsets []int
	for line, start := 0, 0; start < len(u.runes) && line < len(want); line++ {
		end := start
		for end < len(u.runes) && u.runes[end] != '\n' {
			end++
		}
		cut := start + max(0, end-start-utf8.RuneCountInString(want[line]))
		next := min(end+1, len(u.runes))
		runes = append(runes, u.runes[cut:next]...)
		offsets = append(offsets, u.offsets[cut:next]...)
		start = next
	}
	u.runes, u.offsets = runes, offsets
}

// splitting splits a filter into what the store evaluates and the values that it compares with.
type splitting struct {
	*compiling
	source file.Source
	fixed  *evaluation // computes the values that do not depend on the item
}

// comparisons maps the operators of a filter to its operations, also with swapped sides; 0: they
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

// join combines two parts; it merges nested parts of the same operation, so that only real nesting
// counts as depth.
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
