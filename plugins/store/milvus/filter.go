package milvus

import (
	"math"
	"regexp"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// condition is what a filter becomes on a server: an expression for all the
// entries that it selects and, where engines do not agree, for some more. What
// comes back is checked with Filter.Match.
type condition struct {
	expr string // empty: all
	none bool   // no entry at all: nothing has to be asked
}

var (
	all  = condition{}
	none = condition{none: true}
)

// maxExpression keeps an expression to a size that a server parses quickly; a
// larger one is left out, and its work done here.
const maxExpression = 128 << 10

// translate turns a filter into a condition. With negated it is that of the
// filter's opposite: Milvus Lite 2 knows no `not`, and some engines let missing
// metadata differ from a value and some do not, so negations move down to the
// comparisons, where they are exact or dropped. Operators are in lower case:
// Milvus Lite 2 reads an upper-case OR as something else.
func translate(f *sdk.Filter, negated bool) condition {
	if f == nil {
		return all
	}
	switch f.Op {
	case sdk.FilterNot:
		return translate(&f.Parts[0], !negated)
	case sdk.FilterAnd, sdk.FilterOr:
		if (f.Op == sdk.FilterAnd) != negated {
			return conjunction(f.Parts, negated)
		}
		return disjunction(f.Parts, negated)
	}
	if f.Field == sdk.FieldMeta {
		return metaCondition(f, negated)
	}
	return textCondition(f, negated)
}

func conjunction(parts []sdk.Filter, negated bool) condition {
	var exprs []string
	for i := range parts {
		c := translate(&parts[i], negated)
		if c.none {
			return none
		}
		if c.expr != "" {
			exprs = append(exprs, c.expr)
		}
	}
	return join(exprs, " and ")
}

func disjunction(parts []sdk.Filter, negated bool) condition {
	var exprs []string
	for i := range parts {
		c := translate(&parts[i], negated)
		switch {
		case c.none:
		case c.expr == "":
			return all
		default:
			exprs = append(exprs, c.expr)
		}
	}
	if len(exprs) == 0 {
		return none
	}
	return join(exprs, " or ")
}

func join(exprs []string, operator string) condition {
	if len(exprs) == 0 {
		return all
	}
	expr := balanced(exprs, operator)
	if len(expr) > maxExpression {
		return all
	}
	return condition{expr: expr}
}

// balanced puts halves in parentheses: a server nests a chain of a hundred
// deeper than it can read.
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
func textCondition(f *sdk.Filter, negated bool) condition {
	field := fieldID
	if f.Field == sdk.FieldLabel {
		field = fieldLabel
	}
	literals := make([]string, len(f.Values))
	size := 0
	for i, v := range f.Values {
		text, _ := v.(string)
		literal, ok := quote(text)
		if size += len(literal); !ok || size > maxExpression {
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
			return condition{expr: field + [2]string{" == ", " != "}[sign] + literals[0]}
		}
		return condition{expr: field + [2]string{" in [", " not in ["}[sign] + strings.Join(literals, ",") + "]"}
	case sdk.FilterPrefix:
		return prefixCondition(field, f.Values[0].(string), negated)
	}
	return condition{expr: field + " " + comparisons[f.Op][sign] + " " + literals[0]}
}

var plainPrefix = regexp.MustCompile(`^[A-Za-z0-9 .:/-]+$`)

// prefixCondition matches a pattern where no character of the prefix means
// something else in one.
func prefixCondition(field, prefix string, negated bool) condition {
	switch {
	case negated:
		return all
	case plainPrefix.MatchString(prefix):
		return condition{expr: field + ` like "` + prefix + `%"`}
	}
	literal, _ := quote(prefix) // checked before
	return condition{expr: field + " >= " + literal}
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_]+$`)

// metaCondition compares metadata. An entry without the key differs from every
// value, which engines do not agree on.
func metaCondition(f *sdk.Filter, negated bool) condition {
	if negated || !plainKey.MatchString(f.Key) {
		if f.Op == sdk.FilterIn && len(f.Values) == 0 && !negated {
			return none
		}
		return all
	}
	field := fieldMeta + `["` + f.Key + `"]`
	if f.Op == sdk.FilterPrefix {
		if prefix := f.Values[0].(string); plainPrefix.MatchString(prefix) {
			return condition{expr: field + ` like "` + prefix + `%"`}
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
	if len(exprs) == 0 {
		return none
	}
	return join(exprs, " or ")
}

// value writes a value, if every engine reads it alike.
func value(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return quote(v)
	case bool:
		if v {
			return "true", true
		}
		return "false", true
	case float64:
		if v == 0 {
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
