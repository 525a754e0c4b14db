package expression

import (
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

// Of translates a checked filter of racflow's own rows; nil selects all.
func Of(f *sdk.Filter) Condition {
	return Translate(f, func(f *sdk.Filter, negated bool) Condition {
		switch f.Field {
		case sdk.FieldID:
			return Text(row.FieldID, f, negated)
		case sdk.FieldLabel:
			return Text(row.FieldLabel, f, negated)
		}
		if f.Op == sdk.FilterIn && len(f.Values) == 0 && !negated {
			return none
		}
		member, ok := Path(row.FieldMeta, f.Key)
		if !ok {
			return all
		}
		return Member(member, f, negated)
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
