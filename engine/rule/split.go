package rule

import (
	"fmt"
	"slices"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/sdk"
)

// splitting takes a filter apart into what the store evaluates and the values
// that it compares with.
type splitting struct {
	*compiling
	source file.Source
	fixed  *evaluation // for the values that do not depend on the item
}

// comparisons are the operators that a filter has, with the one that stands
// for each when its sides change places; 0: they cannot.
var comparisons = map[string]struct{ op, flipped sdk.FilterOp }{
	"==":         {sdk.FilterIn, sdk.FilterIn},
	"!=":         {sdk.FilterIn, sdk.FilterIn}, // and not
	"<":          {sdk.FilterLess, sdk.FilterGreater},
	"<=":         {sdk.FilterLessEqual, sdk.FilterGreaterEqual},
	">":          {sdk.FilterGreater, sdk.FilterLess},
	">=":         {sdk.FilterGreaterEqual, sdk.FilterLessEqual},
	"in":         {sdk.FilterIn, 0},
	"startsWith": {sdk.FilterPrefix, 0},
}

// writable says what a filter can be.
const writable = "A filter compares id, label or meta.KEY, as they are, with a value of the file or of the item " +
	"(==, !=, <, <=, >, >=, in, not in, startsWith), and joins comparisons by and, or, not."

// part returns the part of a filter that a node stands for.
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

// join combines two parts; those of the same sort become one, however many
// there are, so that only real nesting is deep.
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

// field returns a part that names its field.
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

// compared gives a comparison its value.
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

// given gives a comparison a value that is known now, and checks it.
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

// place is where a node stands.
func place(n ast.Node) file.Location {
	at := n.Location()
	if at.To <= at.From {
		at.To = at.From + 1
	}
	return at
}
