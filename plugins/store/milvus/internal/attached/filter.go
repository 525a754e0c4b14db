package attached

import (
	"slices"
	"strconv"

	"github.com/racflow/racflow/plugins/store/milvus/internal/expression"
	"github.com/racflow/racflow/sdk"
)

var (
	all  = expression.Condition{}
	none = expression.Condition{None: true}
)

// condition translates a filter of entries into one of rows.
func (m *mapping) condition(f *sdk.Filter) expression.Condition {
	return expression.Translate(f, func(f *sdk.Filter, negated bool) expression.Condition {
		switch f.Field {
		case sdk.FieldID:
			return m.compareText(m.id, f, negated)
		case sdk.FieldLabel:
			if m.label == nil {
				return constant(f.Match("", "", nil) != negated)
			}
			return m.compareText(*m.label, f, negated)
		}
		return m.compareMeta(f, negated)
	})
}

func constant(selected bool) expression.Condition {
	if selected {
		return all
	}
	return none
}

// compareText compares an id or a label, which is the empty text where it is missing.
func (m *mapping) compareText(p place, f *sdk.Filter, negated bool) expression.Condition {
	if p.is(whole...) {
		return decimals(p, f, negated)
	}
	maybeMissing := p.field.GetNullable() || len(p.path) > 0
	if maybeMissing && (negated || f.Match("", "", nil)) {
		return all
	}
	if len(p.path) == 0 {
		return expression.Text(p.field.GetName(), f, negated)
	}
	if member, ok := expression.Path(p.field.GetName(), p.path...); ok && f.Op == sdk.FilterIn && !slices.ContainsFunc(f.Values, isNumberText) {
		return expression.Member(member, f, negated)
	}
	return all
}

// isNumberText: a member that is a number or a bool is a label, too, as text.
func isNumberText(v any) bool {
	text, _ := v.(string)
	_, err := strconv.ParseFloat(text, 64)
	return err == nil || text == "true" || text == "false"
}

// decimals compares a field of whole numbers with texts. Their order is another
// one than that of the numbers.
func decimals(p place, f *sdk.Filter, negated bool) expression.Condition {
	if f.Op != sdk.FilterIn || p.field.GetNullable() {
		return all
	}
	var numbers []int64
	for _, v := range f.Values {
		if n, ok := wholeNumber(v.(string)); ok {
			numbers = append(numbers, n)
		}
	}
	switch {
	case len(numbers) == 0:
		return constant(negated)
	case negated:
		return all
	}
	return expression.Condition{Expr: expression.Numbers(p.field.GetName(), numbers)}
}

// wholeNumber reads a number as ids are written: not +5, not 05.
func wholeNumber(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == text
}
