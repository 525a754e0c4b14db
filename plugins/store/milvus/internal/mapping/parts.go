package mapping

import (
	"fmt"
	"slices"
	"strings"

	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"

	"github.com/racflow/racflow/plugins/store/milvus/internal/column"
	"github.com/racflow/racflow/sdk"
)

func (m *Mapping) findID(d *Schema, given Fields) error {
	if m.Key = d.primary(); m.Key == nil {
		return sdk.Invalid(fmt.Errorf("the server names no primary key of collection %q", d.Name))
	}
	m.ID = Place{Field: m.Key}
	if given.ID == "" {
		m.add("id", m.Key.GetName(), "the primary key")
		return nil
	}
	p, err := d.find("fields.id", given.ID)
	switch {
	case err != nil:
		return err
	case !p.Is(texts...) && !p.Is(Whole...):
		return Wrong("fields.id", "%s cannot tell rows apart: an id is a field of strings or of whole numbers", given.ID)
	}
	m.ID = p
	m.add("id", given.ID, named)
	if p.Field != m.Key {
		m.note("Ids come from %s, which is not the primary key: of several rows with one id a search finds the best.", given.ID)
	}
	return nil
}

// findPart finds a field of its own, else a member that the first rows have.
func (m *Mapping) findPart(d *Schema, part, given string, usual []string, types []schemapb.DataType, first []*column.Row) (*Place, string, error) {
	if given != "" {
		p, err := d.find("fields."+part, given)
		if err == nil && len(p.path) == 0 && !p.Is(types...) {
			err = Wrong("fields."+part, "field %s is of type %v, which is no %s", given, p.Field.GetDataType(), part)
		}
		if err == nil && len(p.path) > 0 && len(first) > 0 && !slices.ContainsFunc(first, func(r *column.Row) bool { return textOf(p.value(r)) != "" }) {
			m.note("None of the first %d rows has %s, which the file names for the %s.", len(first), given, part)
		}
		return &p, named, err
	}
	if f := d.wordsInput(m.Words); part == "text" && f != nil {
		return &Place{Field: f}, "the input of the BM25 function", nil
	}
	for _, name := range usual {
		for _, f := range d.Fields {
			if p := (Place{Field: f}); strings.EqualFold(f.GetName(), name) && p.Is(types...) && !m.isKey(f) {
				return &p, "the field with a usual name", nil
			}
		}
	}
	for _, name := range usual {
		for _, f := range d.Fields {
			p := Place{f, []string{name}}
			if f.GetDataType() == schemapb.DataType_JSON && slices.ContainsFunc(first, func(r *column.Row) bool { return textOf(p.value(r)) != "" }) {
				return &p, "a member with a usual name, in the first rows", nil
			}
		}
	}
	if part == "text" {
		if f := m.onlyText(d); f != nil {
			return &Place{Field: f}, "the only field of texts", nil
		}
	}
	return nil, "", nil
}

// onlyText is the field of strings where there is one beside the key.
func (m *Mapping) onlyText(d *Schema) (only *schemapb.FieldSchema) {
	for _, f := range d.Fields {
		if m.isKey(f) || !(Place{Field: f}).Is(texts...) {
			continue
		}
		if only != nil {
			return nil
		}
		only = f
	}
	return only
}

// isKey reports whether rows are told apart by a field.
func (m *Mapping) isKey(f *schemapb.FieldSchema) bool { return f == m.Key || f == m.ID.Field }

// uses reports whether a field is another part of the entries.
func (m *Mapping) uses(f *schemapb.FieldSchema) bool {
	if m.isKey(f) {
		return true
	}
	for _, p := range []*Place{m.text, m.Label, m.context} {
		if p != nil && len(p.path) == 0 && p.Field == f {
			return true
		}
	}
	return false
}
