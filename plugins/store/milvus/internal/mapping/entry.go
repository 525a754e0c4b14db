package mapping

import (
	"slices"
	"strconv"
	"strings"

	"github.com/racflow/racflow/plugins/store/milvus/internal/column"
	"github.com/racflow/racflow/plugins/store/milvus/internal/expression"
	"github.com/racflow/racflow/sdk"
)

// Outputs are the names of the fields to ask for. The key is always among them:
// asked for nothing, some servers return everything.
func (m *Mapping) Outputs(withTexts, withMeta, withVector bool) []string {
	var names []string
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	add(m.Key.GetName())
	parts := []*Place{&m.ID, m.Label}
	if withTexts {
		parts = append(parts, m.text, m.context)
	}
	for _, p := range parts {
		if p != nil {
			add(p.Field.GetName())
		}
	}
	if withTexts || withMeta {
		for _, p := range m.meta {
			add(p.Field.GetName())
		}
	}
	if withVector {
		add(m.Vector.GetName())
	}
	return names
}

// HasTexts reports whether a row came with what outputs(true, ...) names for.
func (m *Mapping) HasTexts(r *column.Row) bool {
	return !slices.ContainsFunc(m.Outputs(true, true, false), func(name string) bool { return !r.Has(name) })
}

// KeyOf is the primary key of a row, as text.
func (m *Mapping) KeyOf(r *column.Row) string { return textOf(r.Value(m.Key.GetName())) }

// IDOf is the id of an entry; empty: the row has none, and is no entry.
func (m *Mapping) IDOf(r *column.Row) string { return textOf(m.ID.value(r)) }

// LabelOf is the label of an entry; empty: it has none.
func (m *Mapping) LabelOf(r *column.Row) string { return m.part(m.Label, r) }

func (m *Mapping) part(p *Place, r *column.Row) string {
	if p == nil {
		return ""
	}
	return textOf(p.value(r))
}

// Entry makes an entry of a row.
func (m *Mapping) Entry(r *column.Row, withTexts bool) sdk.Entry {
	e := sdk.Entry{ID: m.IDOf(r), Label: m.LabelOf(r)}
	if withTexts {
		e.Text, e.Context, e.Meta = m.part(m.text, r), m.part(m.context, r), m.ReadMeta(r)
	}
	return e
}

// OneOf selects rows by their keys or ids, and counts those that it can name: of a
// number only its usual form, and no text that servers read in several ways.
func OneOf(p Place, ids []string) (expr string, n int) {
	numbers := p.Is(Whole...)
	var literals []string
	for _, id := range ids {
		if numbers {
			if n, ok := WholeNumber(id); ok {
				literals = append(literals, strconv.FormatInt(n, 10))
			}
		} else if literal, ok := expression.Quote(id); ok {
			literals = append(literals, literal)
		}
	}
	return p.Field.GetName() + " in [" + strings.Join(literals, ",") + "]", len(literals)
}
