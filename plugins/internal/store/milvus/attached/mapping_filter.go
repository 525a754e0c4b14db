package attached

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
)

var (
	all  = table.Condition{}
	none = table.Condition{None: true}
)

// Condition translates a filter of entries into one of rows.
func (m *Mapping) Condition(f *sdk.Filter) table.Condition {
	return table.Translate(f, func(f *sdk.Filter, negated bool) table.Condition {
		switch {
		case f.Field == sdk.FieldID:
			return compareText(m.ID, f, negated)
		case f.Field == sdk.FieldLabel && m.Label != nil:
			return compareText(*m.Label, f, negated)
		case f.Field == sdk.FieldLabel:
			return constant(f.Match("", "", nil) != negated)
		}
		return m.compareMeta(f, negated)
	})
}

func constant(selected bool) table.Condition {
	if selected {
		return all
	}
	return none
}

// compareText compares an id or a label, which is the empty text where it is missing.
func compareText(p Place, f *sdk.Filter, negated bool) table.Condition {
	maybeMissing := p.Field.GetNullable() || len(p.path) > 0
	switch {
	case maybeMissing && (negated || f.Match("", "", nil)):
		return all
	case p.Is(texts...):
		return table.Text(p.Field.GetName(), f, negated)
	case f.Op != sdk.FilterIn: // the order of numbers is another one than that of texts
		return all
	case p.Is(Whole...):
		expr, n := OneOf(p, f.Values)
		if n == 0 || negated {
			return constant(negated)
		}
		return table.Condition{Expr: expr}
	}
	// A member that is a number or a bool is a label, too, as text.
	isScalar := func(v any) bool {
		_, err := strconv.ParseFloat(v.(string), 64)
		return err == nil || v == "true" || v == "false"
	}
	if member, ok := table.Path(p.Field.GetName(), p.path...); ok && !slices.ContainsFunc(f.Values, isScalar) {
		return table.Member(member, f)
	}
	return all
}

// compareMeta asks every place that may have the key. A row where it is missing
// matches no comparison.
func (m *Mapping) compareMeta(f *sdk.Filter, negated bool) table.Condition {
	var parts []table.Condition
	for _, from := range m.meta {
		switch {
		case from.Is(schemapb.DataType_JSON) && m.takes(from, f.Key):
			parts = append(parts, compareMember(Place{from.Field, append(slices.Clone(from.path), f.Key)}, f))
		case from.Is(schemapb.DataType_JSON) || from.key() != f.Key:
		case len(from.path) > 0:
			parts = append(parts, compareMember(from, f))
		case len(parts) == 0 && !from.Field.GetNullable(): // every row has it, so no other place counts
			return compareField(from.Field, f, negated)
		default:
			parts = append(parts, compareField(from.Field, f, false))
		}
	}
	if negated {
		return all
	}
	return table.Or(parts...)
}

func compareMember(p Place, f *sdk.Filter) table.Condition {
	member, ok := table.Path(p.Field.GetName(), p.path...)
	if !ok {
		return all
	}
	return table.Member(member, f)
}

// compareField compares a field with those of the values that it can have.
func compareField(field *schemapb.FieldSchema, f *sdk.Filter, negated bool) table.Condition {
	p, name := Place{Field: field}, field.GetName()
	if p.Is(texts...) {
		return table.Text(name, only[string](f), negated)
	}
	switch {
	case negated:
		return all
	case p.Is(schemapb.DataType_Bool):
		return table.Member(name, only[bool](f))
	case p.Is(schemapb.DataType_Double):
		return table.Member(name, only[float64](f))
	case p.Is(Whole...):
		return compareWhole(name, only[float64](f))
	}
	return all // engines disagree whether they compare numbers of 32 bits as such
}

// compareWhole compares a field of whole numbers with others of a size that fits every type.
func compareWhole(name string, f *sdk.Filter) table.Condition {
	var numbers []int64
	for _, v := range f.Values {
		switch x := v.(float64); {
		case x == math.Trunc(x) && math.Abs(x) < 1<<31:
			numbers = append(numbers, int64(x))
		case x == math.Trunc(x) || f.Op != sdk.FilterIn:
			return all
		}
	}
	switch {
	case len(numbers) == 0:
		return none
	case f.Op == sdk.FilterIn:
		return table.Condition{Expr: table.Numbers(name, numbers)}
	}
	return table.Condition{Expr: fmt.Sprintf("%s %s %d", name, table.Comparison(f.Op), numbers[0])}
}

// only is a comparison with those of the values that have a type. In nothing is what it
// becomes where there are none: a comparison that is never true.
func only[T any](f *sdk.Filter) *sdk.Filter {
	kept := *f
	kept.Values = slices.DeleteFunc(slices.Clone(f.Values), func(v any) bool { _, ok := v.(T); return !ok })
	if len(kept.Values) == 0 {
		kept.Op = sdk.FilterIn
	}
	return &kept
}

// WholeNumber reads a number as ids are written: not +5, not 05.
func WholeNumber(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == text
}
