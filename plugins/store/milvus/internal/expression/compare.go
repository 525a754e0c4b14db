package expression

import (
	"regexp"
	"strings"

	"github.com/racflow/racflow/sdk"
)

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

// Member translates a comparison with a member of a JSON field. A row without it
// differs from every value, which engines do not agree on.
func Member(member string, f *sdk.Filter, negated bool) Condition {
	if negated {
		return all
	}
	if f.Op == sdk.FilterPrefix {
		if prefix := f.Values[0].(string); plainPrefix.MatchString(prefix) {
			return Condition{Expr: member + ` like "` + prefix + `%"`}
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
		literal, ok := Literal(v)
		if !ok {
			return all
		}
		exprs = append(exprs, member+" "+operator+" "+literal)
	}
	return join(exprs, " or ", none)
}
