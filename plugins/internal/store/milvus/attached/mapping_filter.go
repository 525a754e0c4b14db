package attached

import (
	"slices"
	"strconv"

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
		switch f.Field {
		case sdk.FieldID:
			return m.compareText(m.ID, f, negated)
		case sdk.FieldLabel:
			if m.Label == nil {
				return constant(f.Match("", "", nil) != negated)
			}
			return m.compareText(*m.Label, f, negated)
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
func (m *Mapping) compareText(p Place, f *sdk.Filter, negated bool) table.Condition {
	if p.Is(Whole...) {
		return decimals(p, f, negated)
	}
	maybeMissing := p.Field.GetNullable() || len(p.path) > 0
	if maybeMissing && (negated || f.Match("", "", nil)) {
		return all
	}
	if len(p.path) == 0 {
		return table.Text(p.Field.GetName(), f, negated)
	}
	if member, ok := table.Path(p.Field.GetName(), p.path...); ok && f.Op == sdk.FilterIn && !slices.ContainsFunc(f.Values, isNumberText) {
		return table.Member(member, f, negated)
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
func decimals(p Place, f *sdk.Filter, negated bool) table.Condition {
	if f.Op != sdk.FilterIn || p.Field.GetNullable() {
		return all
	}
	var numbers []int64
	for _, v := range f.Values {
		if n, ok := WholeNumber(v.(string)); ok {
			numbers = append(numbers, n)
		}
	}
	switch {
	case len(numbers) == 0:
		return constant(negated)
	case negated:
		return all
	}
	return table.Condition{Expr: table.Numbers(p.Field.GetName(), numbers)}
}

// WholeNumber reads a number as ids are written: not +5, not 05.
func WholeNumber(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == text
}
