package mapping

import (
	"math"
	"slices"
	"strconv"

	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"

	"github.com/racflow/racflow/plugins/store/milvus/internal/expression"
	"github.com/racflow/racflow/sdk"
)

// compareMeta asks every place that may have the key. A row where it is missing
// matches no comparison.
func (m *Mapping) compareMeta(f *sdk.Filter, negated bool) expression.Condition {
	var places []Place
	for _, from := range m.meta {
		switch {
		case from.members && m.takes(from, f.Key):
			places = append(places, Place{from.Field, append(slices.Clone(from.path), f.Key)})
		case !from.members && from.key() == f.Key:
			if places = append(places, from.Place); len(places) == 1 && len(from.path) == 0 && !from.Field.GetNullable() {
				return compareField(from.Place, f, negated) // every row has it, so no other place counts
			}
		}
	}
	if negated && len(places) > 0 {
		return all
	}
	var parts []expression.Condition
	for _, p := range places {
		parts = append(parts, compareValue(p, f))
	}
	if len(places) == 0 {
		return constant(negated)
	}
	return expression.Or(parts...)
}

// compareField compares a field in which every row has a value.
func compareField(p Place, f *sdk.Filter, negated bool) expression.Condition {
	switch {
	case !negated:
		return compareValue(p, f)
	case p.Is(texts...):
		return expression.Text(p.Field.GetName(), only(f, isText), true)
	}
	return all
}

func compareValue(p Place, f *sdk.Filter) expression.Condition {
	name := p.Field.GetName()
	switch {
	case len(p.path) > 0:
		member, ok := expression.Path(name, p.path...)
		if !ok {
			return all
		}
		return expression.Member(member, f, false)
	case p.Is(texts...):
		return expression.Text(name, only(f, isText), false)
	case p.Is(schemapb.DataType_Bool):
		return expression.Member(name, only(f, func(v any) bool { _, ok := v.(bool); return ok }), false)
	case p.Is(schemapb.DataType_Float):
		// Engines disagree whether they compare as 32 or 64 bits.
		exact := only(f, func(v any) bool { x, ok := v.(float64); return ok && float64(float32(x)) == x })
		if f.Op != sdk.FilterIn && len(exact.Values) < len(f.Values) {
			return all
		}
		return expression.Member(name, exact, false)
	case p.Is(schemapb.DataType_Double):
		return expression.Member(name, only(f, isNumber), false)
	}
	return compareWhole(name, f)
}

func isNumber(v any) bool { _, ok := v.(float64); return ok }
func isText(v any) bool   { _, ok := v.(string); return ok }

// compareWhole compares a field of whole numbers, which some servers refuse to
// compare with others.
func compareWhole(name string, f *sdk.Filter) expression.Condition {
	var numbers []int64
	for _, v := range f.Values {
		x, ok := v.(float64)
		switch {
		case !ok:
			continue
		case math.Abs(x) >= 1<<31: // further numbers do not fit every type, or a float64
			return all
		case x == math.Trunc(x):
			numbers = append(numbers, int64(x))
		case f.Op == sdk.FilterLess || f.Op == sdk.FilterLessEqual:
			return expression.Condition{Expr: name + " <= " + strconv.FormatInt(int64(math.Floor(x)), 10)}
		case f.Op == sdk.FilterGreater || f.Op == sdk.FilterGreaterEqual:
			return expression.Condition{Expr: name + " >= " + strconv.FormatInt(int64(math.Ceil(x)), 10)}
		}
	}
	if len(numbers) == 0 {
		return none
	}
	operator := map[sdk.FilterOp]string{sdk.FilterLess: " < ", sdk.FilterLessEqual: " <= ", sdk.FilterGreater: " > ", sdk.FilterGreaterEqual: " >= "}[f.Op]
	if operator == "" {
		return expression.Condition{Expr: expression.Numbers(name, numbers)}
	}
	return expression.Condition{Expr: name + operator + strconv.FormatInt(numbers[0], 10)}
}

// only is a comparison with those of the values that a field can have. In nothing
// is what it becomes where there are none: a comparison that is never true.
func only(f *sdk.Filter, can func(any) bool) *sdk.Filter {
	kept := *f
	kept.Values = nil
	for _, v := range f.Values {
		if can(v) {
			kept.Values = append(kept.Values, v)
		}
	}
	if len(kept.Values) == 0 {
		kept.Op = sdk.FilterIn
	}
	return &kept
}
