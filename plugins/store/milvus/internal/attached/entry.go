package attached

import (
	"slices"
	"strconv"
	"strings"

	"github.com/racflow/racflow/plugins/store/milvus/internal/expression"
	"github.com/racflow/racflow/sdk"
)

// outputs are the names of the fields to ask for. The key is always among them:
// asked for nothing, some servers return everything.
func (m *mapping) outputs(withTexts, withMeta, withVector bool) []string {
	var names []string
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	add(m.key.GetName())
	parts := []*place{&m.id, m.label}
	if withTexts {
		parts = append(parts, m.text, m.context)
	}
	for _, p := range parts {
		if p != nil {
			add(p.field.GetName())
		}
	}
	if withTexts || withMeta {
		for _, p := range m.meta {
			add(p.field.GetName())
		}
	}
	if withVector {
		add(m.vector.GetName())
	}
	return names
}

// hasTexts reports whether a row came with what outputs(true, ...) names for.
func (r *record) hasTexts(m *mapping) bool {
	return !slices.ContainsFunc(m.outputs(true, true, false), func(name string) bool { return r.rows.columns[name] == nil })
}

func (m *mapping) keyOf(r *record) string   { return textOf(r.value(m.key.GetName())) }
func (m *mapping) idOf(r *record) string    { return textOf(m.id.value(r)) }
func (m *mapping) labelOf(r *record) string { return m.part(m.label, r) }

func (m *mapping) part(p *place, r *record) string {
	if p == nil {
		return ""
	}
	return textOf(p.value(r))
}

// entry makes an entry of a row.
func (m *mapping) entry(r *record, withTexts bool) sdk.Entry {
	e := sdk.Entry{ID: m.idOf(r), Label: m.labelOf(r)}
	if withTexts {
		e.Text, e.Context, e.Meta = m.part(m.text, r), m.part(m.context, r), m.readMeta(r)
	}
	return e
}

// oneOf selects rows by their keys or ids, and counts those that it can name: of a
// number only its usual form, and no text that servers read in several ways.
func oneOf(p place, ids []string) (expr string, n int) {
	numbers := p.is(whole...)
	var literals []string
	for _, id := range ids {
		if numbers {
			if n, ok := wholeNumber(id); ok {
				literals = append(literals, strconv.FormatInt(n, 10))
			}
		} else if literal, ok := expression.Quote(id); ok {
			literals = append(literals, literal)
		}
	}
	return p.field.GetName() + " in [" + strings.Join(literals, ",") + "]", len(literals)
}
