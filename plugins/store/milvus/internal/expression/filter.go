package expression

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/racflow/racflow/plugins/store/milvus/internal/row"
	"github.com/racflow/racflow/sdk"
)

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

// Of translates a checked filter; nil selects all.
func Of(f *sdk.Filter) Condition { return translate(f, false) }

// translate negates the filter where negated is set: Milvus Lite 2 has no `not`,
// and engines disagree whether missing metadata differs from a value, so negations
// move down to the comparisons, where they are exact or dropped. Operators are in
// lower case: Milvus Lite 2 reads an upper-case OR as something else.
func translate(f *sdk.Filter, negated bool) Condition {
	if f == nil {
		return all
	}
	switch f.Op {
	case sdk.FilterNot:
		return translate(&f.Parts[0], !negated)
	case sdk.FilterAnd, sdk.FilterOr:
		return combination(f.Parts, negated, (f.Op == sdk.FilterAnd) != negated)
	}
	if f.Field == sdk.FieldMeta {
		return metaCondition(f, negated)
	}
	return textCondition(f, negated)
}

func combination(parts []sdk.Filter, negated, and bool) Condition {
	var exprs []string
	for i := range parts {
		switch c := translate(&parts[i], negated); {
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

var comparisons = map[sdk.FilterOp][2]string{ // as it is, negated
	sdk.FilterLess:         {"<", ">="},
	sdk.FilterLessEqual:    {"<=", ">"},
	sdk.FilterGreater:      {">", "<="},
	sdk.FilterGreaterEqual: {">=", "<"},
}

// textCondition compares the id or the label, which every row has.
func textCondition(f *sdk.Filter, negated bool) Condition {
	field := row.FieldID
	if f.Field == sdk.FieldLabel {
		field = row.FieldLabel
	}
	literals := make([]string, len(f.Values))
	size := 0
	for i, v := range f.Values {
		text, _ := v.(string)
		literal, ok := quote(text)
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
	literal, _ := quote(prefix) // checked before
	return Condition{Expr: field + " >= " + literal}
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_]+$`)

// metaCondition compares metadata. An entry without the key differs from every
// value, which engines do not agree on.
func metaCondition(f *sdk.Filter, negated bool) Condition {
	if negated || !plainKey.MatchString(f.Key) {
		if f.Op == sdk.FilterIn && len(f.Values) == 0 && !negated {
			return none
		}
		return all
	}
	field := row.FieldMeta + `["` + f.Key + `"]`
	if f.Op == sdk.FilterPrefix {
		if prefix := f.Values[0].(string); plainPrefix.MatchString(prefix) {
			return Condition{Expr: field + ` like "` + prefix + `%"`}
		}
		return all
	}
	operator := "=="
	if f.Op != sdk.FilterIn {
		operator = comparisons[f.Op][0]
	}
	// Not every engine takes a list here, or one of numbers and strings.
	var exprs []string
	for _, v := range f.Values {
		literal, ok := value(v)
		if !ok {
			return all
		}
		exprs = append(exprs, field+" "+operator+" "+literal)
	}
	return join(exprs, " or ", none)
}

// value writes a value, if every engine reads it alike.
func value(v any) (string, bool) {
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
		return row.FloatText(v), true
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
