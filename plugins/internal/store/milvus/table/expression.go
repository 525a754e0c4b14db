package table

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// This file writes the boolean expressions that select rows on a server,
// those of filters among them. A filter is translated where every engine agrees on
// its meaning, else to something weaker: whoever asks has to check what comes back.

var comparisons = map[sdk.FilterOp]string{
	sdk.FilterLess: "<", sdk.FilterLessEqual: "<=", sdk.FilterGreater: ">", sdk.FilterGreaterEqual: ">=",
}

// Kind says what an operand holds, and which values of a comparison it can have.
type Kind int

// The kinds of operands.
const (
	Text     Kind = iota // strings
	Whole                // whole numbers of any size
	WholeIDs             // whole numbers that are compared as texts, written as ids are
	Double               // numbers of 64 bits
	Bool
	Member // of a JSON field: all but whole numbers
)

// Operand is what a comparison asks a server about.
type Operand struct {
	Name string // in an expression
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
		if !plainPrefix.MatchString(prefix) { // a character of it may mean something else in a pattern
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
	default: // not every engine takes a list here, or one of numbers and strings
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

// literal writes a value, if every engine reads it alike; never: no row has such a value.
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

// WholeNumber reads a number as ids are written: not +5, not 05.
func WholeNumber(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == text
}

// Condition is what a filter becomes on a server: an expression for all the
// entries that it selects and, where engines do not agree, for some more. The
// caller checks what comes back with Filter.Match.
type Condition struct {
	Expr string // empty: all
	None bool   // no entry at all: there is nothing to ask
	Not  string // selects all other rows; empty: not known
}

var (
	all  = Condition{}
	none = Condition{None: true}
)

// maxLength keeps an expression to a size that a server parses quickly; of a
// longer filter the caller does the work.
const maxLength = 128 << 10

// Translate translates a checked filter, whose comparisons compare translates; nil selects all. Of
// negations only those of texts that every row has are translated: engines disagree whether missing metadata differs from
// a value, and Milvus Lite 2 has no `not`. Operators are in lower case: Milvus Lite 2 reads an upper-case OR as something
// else.
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

// Combine selects what all of the conditions select, or any of them.
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

// balanced puts halves in parentheses: a server parses a chain of a hundred into
// a deeper tree than it can read.
func balanced(exprs []string, operator string) string {
	if len(exprs) == 1 {
		return exprs[0]
	}
	half := len(exprs) / 2
	return "(" + balanced(exprs[:half], operator) + operator + balanced(exprs[half:], operator) + ")"
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_]+$`)

// CompareMember translates a comparison with a member of a JSON field, if every engine reads its keys alike.
func CompareMember(field string, keys []string, f *sdk.Filter) Condition {
	for _, key := range keys {
		if !plainKey.MatchString(key) {
			return all
		}
		field += `["` + key + `"]`
	}
	return Compare(Operand{field, Member}, f)
}

// Literal writes a string, a number or a bool, if every engine reads it alike.
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
		// Larger numbers would be compared as whole ones, or need an exponent.
		if size := math.Abs(v); size < 1e-4 || size > 1e12 {
			return "", false
		}
		return floatText(v), true
	}
	return "", false
}

// quote writes a string, if every engine reads it alike: there is no way to
// write a line feed or a tab that Milvus Lite 2 understands.
func quote(text string) (string, bool) {
	for _, r := range text {
		if r < ' ' || r == 0x7f {
			return "", false
		}
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`, true
}

// and joins expressions and leaves out empty ones.
func and(exprs ...string) string {
	var given []string
	for _, e := range exprs {
		if e != "" {
			given = append(given, e)
		}
	}
	return strings.Join(given, " and ")
}

// OneOf selects the rows with one of some keys or ids, and counts those that it can name: of a number only its
// usual form, and no text that servers read in several ways. Some servers take no empty list.
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

// Keys selects the rows of racflow's own with one of the keys, which need no escapes.
func Keys(keys []string) string {
	expr, _ := OneOf(FieldKey, false, keys)
	return expr
}
