package attached

import (
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
	return table.Translate(f, false, func(f *sdk.Filter, negated bool) table.Condition {
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
	if (p.Field.GetNullable() || len(p.path) > 0) && f.Match("", "", nil) {
		return all
	}
	if p.Is(Whole...) {
		return table.Compare(table.Operand{Name: p.Field.GetName(), Kind: table.WholeIDs}, f, negated)
	}
	// A member that is a number or a bool is a label, too, as text.
	isScalar := func(v any) bool {
		_, err := strconv.ParseFloat(v.(string), 64)
		return err == nil || v == "true" || v == "false"
	}
	if len(p.path) > 0 && slices.ContainsFunc(f.Values, isScalar) {
		return all
	}
	return p.compare(f, negated)
}

// compareMeta asks every place that may have the key. A row where it is missing
// matches no comparison.
func (m *Mapping) compareMeta(f *sdk.Filter, negated bool) table.Condition {
	var parts []table.Condition
	for _, p := range m.meta {
		switch {
		case p.Is(schemapb.DataType_JSON) && m.takes(p, f.Key):
			p = Place{p.Field, append(slices.Clone(p.path), f.Key)}
		case p.Is(schemapb.DataType_JSON) || p.key() != f.Key:
			continue
		case len(parts) == 0 && len(p.path) == 0 && !p.Field.GetNullable(): // every row has it, so no other place counts
			return p.compare(f, negated)
		}
		parts = append(parts, p.compare(f, false))
	}
	if negated {
		return all
	}
	return table.Combine(parts, false)
}

// compare translates a comparison with what a field or a member holds.
func (p Place) compare(f *sdk.Filter, negated bool) table.Condition {
	if len(p.path) > 0 {
		return table.CompareMember(p.Field.GetName(), p.path, f, negated)
	}
	o := table.Operand{Name: p.Field.GetName(), Missing: p.Field.GetNullable()}
	switch {
	case p.Is(texts...):
	case p.Is(Whole...):
		o.Kind = table.Whole
	case p.Is(schemapb.DataType_Double):
		o.Kind = table.Double
	case p.Is(schemapb.DataType_Bool):
		o.Kind = table.Bool
	default:
		return all // engines disagree whether they compare numbers of 32 bits as such
	}
	return table.Compare(o, f, negated)
}
