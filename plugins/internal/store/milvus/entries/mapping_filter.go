package entries

import (
	"slices"
	"strconv"

	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
)

// condition translates a filter of entries into a condition on rows.
func (m *Mapping) condition(f *sdk.Filter) table.Condition {
	return table.Translate(f, func(f *sdk.Filter) table.Condition {
		switch {
		case f.Field == sdk.FieldID:
			return compareText(m.ID, f)
		case f.Field == sdk.FieldLabel && m.Label != nil:
			return compareText(*m.Label, f)
		case f.Field == sdk.FieldLabel:
			return table.Condition{None: !f.Match("", "", nil)}
		}
		return m.compareMeta(f)
	})
}

// compareText compares an id or a label. A missing one is the empty text.
func compareText(p Place, f *sdk.Filter) table.Condition {
	// A number or a bool also counts as a label, in its text form.
	isScalar := func(v any) bool {
		_, err := strconv.ParseFloat(v.(string), 64)
		return err == nil || v == "true" || v == "false"
	}
	switch isMember := len(p.path) > 0; {
	case (p.Field.GetNullable() || isMember) && f.Match("", "", nil), isMember && slices.ContainsFunc(f.Values, isScalar):
		return table.Condition{}
	case p.Is(whole...):
		return table.Compare(table.Operand{Name: p.Field.GetName(), Kind: table.WholeIDs}, f)
	}
	return p.compare(f)
}

// compareMeta compares every place that may have the key. A row without the key matches no comparison.
func (m *Mapping) compareMeta(f *sdk.Filter) table.Condition {
	var parts []table.Condition
	for _, p := range m.meta {
		switch {
		case p.Is(schemapb.DataType_JSON) && m.takes(p, f.Key):
			p = Place{p.Field, append(slices.Clone(p.path), f.Key)}
		case p.Is(schemapb.DataType_JSON) || p.key() != f.Key:
			continue
		case len(parts) == 0 && len(p.path) == 0 && !p.Field.GetNullable(): // every row has it, so no other place counts
			return p.compare(f)
		}
		parts = append(parts, p.compare(f))
	}
	return table.Combine(parts, false)
}

// compare translates a comparison with the value of a field or a member.
func (p Place) compare(f *sdk.Filter) table.Condition {
	kind := table.Text
	switch {
	case len(p.path) > 0:
		return table.CompareMember(p.Field.GetName(), p.path, f)
	case p.Is(texts...):
	case p.Is(whole...):
		kind = table.Whole
	case p.Is(schemapb.DataType_Double):
		kind = table.Double
	case p.Is(schemapb.DataType_Bool):
		kind = table.Bool
	default:
		return table.Condition{} // engines disagree on how to compare 32-bit numbers
	}
	c := table.Compare(table.Operand{Name: p.Field.GetName(), Kind: kind}, f)
	if p.Field.GetNullable() {
		c.Not = ""
	}
	return c
}
