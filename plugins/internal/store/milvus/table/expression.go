package table

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// This file writes the boolean expressions that select rows on a server, including those of filters. A filter is
// translated exactly if every engine agrees on its meaning, and otherwise to a weaker one: callers must check the
// returned rows.

var comparisons = map[sdk.FilterOp]string{
	sdk.FilterLess: "<", sdk.FilterLessEqual: "<=", sdk.FilterGreater: ">", sdk.FilterGreaterEqual: ">=",
}

// Kind is the type of an operand. It decides which values the operand can be compared with.
type Kind int

// The kinds of operands.
const (
	Text     Kind = iota // strings
	Whole                // whole numbers of any size
	WholeIDs             // whole numbers that are compared as texts, in the form of ids
	Double               // numbers of 64 bits
	Bool
	Member // of a JSON field: any value except whole numbers
)

// Operand is the left-hand side of a comparison on a server.
type Operand struct {
	Name string // as in an expression
	Kind Kind
}

var plainPrefix = regexp.MustCompile(`^[A-Za-z0-9 .:/-]+$`)

// Compare translates a comparison.
func Compare(o Operand, f *sdk.Filter) Condition {
	if o.Kind == WholeIDs && f.Op != sdk.FilterIn {
		return all
	}
	var literals []string
	for _, v := range f.Values {
		literal, never, ok := o.literal(v, f.Op)
		switch {
		case never:
		case !ok:
			return all
		default:
			literals = append(literals, literal)
		}
	}
	var c Condition
	switch {
	case len(literals) == 0:
		return none
	case f.Op == sdk.FilterPrefix:
		prefix := f.Values[0].(string)
		if !plainPrefix.MatchString(prefix) { // a character may have another meaning in a pattern
			return all
		}
		c.Expr = o.Name + ` like "` + prefix + `%"`
	case f.Op != sdk.FilterIn:
		c.Expr = o.Name + " " + comparisons[f.Op] + " " + literals[0]
	case o.Kind <= WholeIDs:
		list := "[" + strings.Join(literals, ",") + "]"
		if c.Expr = o.Name + " in " + list; o.Kind == Text {
			c.Not = o.Name + " not in " + list
		}
	default: // some engines take no list here, or no list of numbers and strings
		for i, literal := range literals {
			literals[i] = o.Name + " == " + literal
		}
		return join(literals, " or ", none)
	}
	if len(c.Not) > maxLength || len(c.Expr) > maxLength {
		return all
	}
	return c
}

// literal formats a value, if every engine reads it alike. never: no row has such a value.
func (o Operand) literal(v any, op sdk.FilterOp) (literal string, never, ok bool) {
	text, isText := v.(string)
	number, isNumber := v.(float64)
	_, isBool := v.(bool)
	switch o.Kind {
	case WholeIDs:
		_, ok := WholeNumber(text)
		return text, !ok, ok
	case Whole:
		whole := number == math.Trunc(number)
		return strconv.FormatFloat(number, 'f', 0, 64), !isNumber || !whole && op == sdk.FilterIn, whole && math.Abs(number) < 1<<31
	case Text:
		never = !isText
	case Double:
		never = !isNumber
	case Bool:
		never = !isBool
	}
	literal, ok = Literal(v)
	return literal, never, ok
}

// WholeNumber parses a number in the form of ids: not +5, not 05.
func WholeNumber(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == text
}

// Condition is a filter in the form of a server: an expression that selects all matching entries and, where engines
// disagree, some more. The caller checks the returned entries with Filter.Match.
type Condition struct {
	Expr string // empty: all
	None bool   // no entry matches, so nothing needs to be asked
	Not  string // selects all other rows; empty: unknown
}

var (
	all  = Condition{}
	none = Condition{None: true}
)

// maxLength is the length up to which a server parses an expression quickly. The caller applies longer filters
// itself.
const maxLength = 128 << 10

// Translate translates a checked filter; compare translates its comparisons. A nil filter selects everything.
// Negations are translated only for texts that every row has: engines disagree whether missing metadata differs from
// a value, and Milvus Lite 2 has no `not`. Operators are in lower case, because Milvus Lite 2 misreads an upper-case
// OR.
func Translate(f *sdk.Filter, compare func(*sdk.Filter) Condition) Condition {
	switch {
	case f == nil:
		return all
	case f.Op == sdk.FilterNot:
		return Condition{Expr: Translate(&f.Parts[0], compare).Not}
	case f.Op == sdk.FilterAnd || f.Op == sdk.FilterOr:
		parts := make([]Condition, len(f.Parts))
		for i := range f.Parts {
			parts[i] = Translate(&f.Parts[i], compare)
		}
		return Combine(parts, f.Op == sdk.FilterAnd)
	}
	return compare(f)
}

// Combine selects the rows that match all of the conditions, or any of them.
func Combine(parts []Condition, and bool) Condition {
	var exprs []string
	for _, c := range parts {
		switch {
		case c.None && and:
			return none
		case c == all && !and:
			return all
		case c.Expr != "":
			exprs = append(exprs, c.Expr)
		}
	}
	if and {
		return join(exprs, " and ", all)
	}
	return join(exprs, " or ", none)
}

func join(exprs []string, operator string, empty Condition) Condition {
	if len(exprs) == 0 {
		return empty
	}
	if expr := balanced(exprs, operator); len(expr) <= maxLength {
		return Condition{Expr: expr}
	}
	return all
}

// balanced nests halves in parentheses: a server parses a chain of a hundred operands into too deep a tree.
func balanced(exprs []string, operator string) string {
	if len(exprs) == 1 {
		return exprs[0]
	}
	half := len(exprs) / 2
	return "(" + balanced(exprs[:half], operator) + operator + balanced(exprs[half:], operator) + ")"
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_]+$`)

// CompareMember translates a comparison with a member of a JSON field, if every engine reads the member's keys alike.
func CompareMember(field string, keys []string, f *sdk.Filter) Condition {
	for _, key := range keys {
		if !plainKey.MatchString(key) {
			return all
		}
		field += `["` + key + `"]`
	}
	return Compare(Operand{field, Member}, f)
}

// Literal formats a string, a number or a bool, if every engine reads it alike.
func Literal(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return quote(v)
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		if v == 0 { // negative zero, too
			return "0.0", true
		}
		// Larger numbers would be compared as integers, or need an exponent.
		if size := math.Abs(v); size < 1e-4 || size > 1e12 {
			return "", false
		}
		return floatText(v), true
	}
	return "", false
}

// quote formats a string, if every engine reads it alike: Milvus Lite 2 understands no form of a line feed or a tab.
func quote(text string) (string, bool) {
	for _, r := range text {
		if r < ' ' || r == 0x7f {
			return "", false
		}
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`, true
}

// and joins expressions and skips empty ones.
func and(exprs ...string) string {
	var given []string
	for _, e := range exprs {
		if e != "" {
			given = append(given, e)
		}
	}
	return strings.Join(given, " and ")
}

// OneOf selects the rows with one of the given keys or ids. n is how many of them the expression contains: numbers
// only in their usual form, and no text that servers read in different ways. Some servers take no empty list.
func OneOf(field string, whole bool, ids []string) (expr string, n int) {
	var literals []string
	for _, id := range ids {
		literal, ok := quote(id)
		if whole {
			literal = id
			_, ok = WholeNumber(id)
		}
		if ok {
			literals = append(literals, literal)
		}
	}
	return field + " in [" + strings.Join(literals, ",") + "]", len(literals)
}

// Keys selects racflow's own rows with one of the keys, which need no escapes.
func Keys(keys []string) string {
	expr, _ := OneOf(FieldKey, false, keys)
	return expr
}
