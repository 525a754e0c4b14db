package table

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// This file writes the boolean expressions that select rows on a server,
// those of filters among them. A filter is translated where every engine agrees on
// its meaning, else to something weaker: whoever asks has to check what comes back.

var comparisons = map[sdk.FilterOp][2]string{ // as it is, negated
	sdk.FilterLess:         {"<", ">="},
	sdk.FilterLessEqual:    {"<=", ">"},
	sdk.FilterGreater:      {">", "<="},
	sdk.FilterGreaterEqual: {">=", "<"},
}

// Text translates a comparison with a field of strings that every row has.
func Text(field string, f *sdk.Filter, negated bool) Condition {
	literals := make([]string, len(f.Values))
	size := 0
	for i, v := range f.Values {
		text, _ := v.(string)
		literal, ok := Quote(text)
		if size += len(literal); !ok || size > maxLength {
			return all
		}
		literals[i] = literal
	}
	sign := 0
	if negated {
		sign = 1
	}
	switch f.Op {
	case sdk.FilterIn:
		switch len(literals) {
		case 0:
			if negated {
				return all
			}
			return none // a server may not take an empty list
		case 1:
			return Condition{Expr: field + [2]string{" == ", " != "}[sign] + literals[0]}
		}
		return Condition{Expr: field + [2]string{" in [", " not in ["}[sign] + strings.Join(literals, ",") + "]"}
	case sdk.FilterPrefix:
		return prefixCondition(field, f.Values[0].(string), negated)
	}
	return Condition{Expr: field + " " + comparisons[f.Op][sign] + " " + literals[0]}
}

var plainPrefix = regexp.MustCompile(`^[A-Za-z0-9 .:/-]+$`)

// prefixCondition matches a pattern where no character of the prefix means
// something else in one.
func prefixCondition(field, prefix string, negated bool) Condition {
	switch {
	case negated:
		return all
	case plainPrefix.MatchString(prefix):
		return Condition{Expr: field + ` like "` + prefix + `%"`}
	}
	literal, _ := Quote(prefix) // checked before
	return Condition{Expr: field + " >= " + literal}
}

// Comparison is the operator of a comparison other than FilterIn and FilterPrefix.
func Comparison(op sdk.FilterOp) string { return comparisons[op][0] }

// Member translates a comparison with a member of a JSON field. One that is negated has
// no translation: a row without the member differs from every value, which engines do
// not agree on.
func Member(member string, f *sdk.Filter) Condition {
	if f.Op == sdk.FilterPrefix {
		if prefix := f.Values[0].(string); plainPrefix.MatchString(prefix) {
			return Condition{Expr: member + ` like "` + prefix + `%"`}
		}
		return all
	}
	operator := "=="
	if f.Op != sdk.FilterIn {
		operator = Comparison(f.Op)
	}
	// Not every engine takes a list here, or one of numbers and strings.
	var exprs []string
	for _, v := range f.Values {
		literal, ok := Literal(v)
		if !ok {
			return all
		}
		exprs = append(exprs, member+" "+operator+" "+literal)
	}
	return join(exprs, " or ", none)
}

// Condition is what a filter becomes on a server: an expression for all the
// entries that it selects and, where engines do not agree, for some more. The
// caller checks what comes back with Filter.Match.
type Condition struct {
	Expr string // empty: all
	None bool   // no entry at all: there is nothing to ask
}

var (
	all  = Condition{}
	none = Condition{None: true}
)

// maxLength keeps an expression to a size that a server parses quickly; of a
// longer filter the caller does the work.
const maxLength = 128 << 10

// ConditionOf translates a checked filter of racflow's own rows; nil selects all.
func ConditionOf(f *sdk.Filter) Condition {
	return Translate(f, func(f *sdk.Filter, negated bool) Condition {
		switch f.Field {
		case sdk.FieldID:
			return Text(FieldID, f, negated)
		case sdk.FieldLabel:
			return Text(FieldLabel, f, negated)
		}
		if f.Op == sdk.FilterIn && len(f.Values) == 0 && !negated {
			return none
		}
		member, ok := Path(FieldMeta, f.Key)
		if !ok || negated {
			return all
		}
		return Member(member, f)
	})
}

// Translate translates a checked filter whose comparisons compare translates, as
// they are or negated; nil selects all.
//
// Milvus Lite 2 has no `not`, and engines disagree whether missing metadata differs
// from a value, so negations move down to the comparisons, where they are exact or
// dropped. Operators are in lower case: Milvus Lite 2 reads an upper-case OR as
// something else.
func Translate(f *sdk.Filter, compare func(f *sdk.Filter, negated bool) Condition) Condition {
	if f == nil {
		return all
	}
	return translate(f, false, compare)
}

func translate(f *sdk.Filter, negated bool, compare func(*sdk.Filter, bool) Condition) Condition {
	switch f.Op {
	case sdk.FilterNot:
		return translate(&f.Parts[0], !negated, compare)
	case sdk.FilterAnd, sdk.FilterOr:
		parts := make([]Condition, len(f.Parts))
		for i := range f.Parts {
			parts[i] = translate(&f.Parts[i], negated, compare)
		}
		return combination(parts, (f.Op == sdk.FilterAnd) != negated)
	}
	return compare(f, negated)
}

// Or selects what any of the conditions selects.
func Or(parts ...Condition) Condition { return combination(parts, false) }

func combination(parts []Condition, and bool) Condition {
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

// Path writes a member of a JSON field, if every engine reads its keys alike.
func Path(field string, keys ...string) (string, bool) {
	for _, key := range keys {
		if !plainKey.MatchString(key) {
			return "", false
		}
		field += `["` + key + `"]`
	}
	return field, true
}

// Literal writes a string, a number or a bool, if every engine reads it alike.
func Literal(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return Quote(v)
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
		return FloatText(v), true
	}
	return "", false
}

// Quote writes a string, if every engine reads it alike: there is no way to
// write a line feed or a tab that Milvus Lite 2 understands.
func Quote(text string) (string, bool) {
	for _, r := range text {
		if r < ' ' || r == 0x7f {
			return "", false
		}
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`, true
}

// And joins expressions and leaves out empty ones.
func And(exprs ...string) string {
	var given []string
	for _, e := range exprs {
		if e != "" {
			given = append(given, e)
		}
	}
	return strings.Join(given, " and ")
}

// Between selects the rows with sequence numbers from a first one on and below a
// last one.
func Between(from, to int64) string {
	if from <= 0 {
		return fmt.Sprintf("%s < %d", FieldSequence, to)
	}
	return fmt.Sprintf("%s < %d and %s >= %d", FieldSequence, to, FieldSequence, from)
}

// Outside selects the rows without the sequence numbers from a first one on and below
// a last one.
func Outside(from, to int64) string {
	return fmt.Sprintf("(%s < %d or %s >= %d)", FieldSequence, from, FieldSequence, to)
}

// Numbers selects the rows whose field has one of the numbers. Some servers take
// no empty list.
func Numbers(field string, numbers []int64) string {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.FormatInt(n, 10)
	}
	return field + " in [" + strings.Join(texts, ",") + "]"
}

// Keys selects the rows with one of the keys, which need no escapes. Some servers
// take no empty list.
func Keys(keys []string) string {
	return FieldKey + ` in ["` + strings.Join(keys, `","`) + `"]`
}
