package attached

import (
	"fmt"
	"slices"
	"strings"

	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"

	"github.com/racflow/racflow/sdk"
)

func (m *mapping) findID(d *description, given Fields) error {
	if m.key = d.primary(); m.key == nil {
		return sdk.Invalid(fmt.Errorf("the server names no primary key of collection %q", d.name))
	}
	m.id = place{field: m.key}
	if given.ID == "" {
		m.add("id", m.key.GetName(), "the primary key")
		return nil
	}
	p, err := d.find("fields.id", given.ID)
	switch {
	case err != nil:
		return err
	case !p.is(texts...) && !p.is(whole...):
		return wrong("fields.id", "%s cannot tell rows apart: an id is a field of strings or of whole numbers", given.ID)
	}
	m.id = p
	m.add("id", given.ID, named)
	if p.field != m.key {
		m.note("Ids come from %s, which is not the primary key: of several rows with one id a search finds the best.", given.ID)
	}
	return nil
}

// findPart finds a field of its own, else a member that the first rows have.
func (m *mapping) findPart(d *description, part, given string, usual []string, types []schemapb.DataType, first []*record) (*place, string, error) {
	if given != "" {
		p, err := d.find("fields."+part, given)
		if err == nil && len(p.path) == 0 && !p.is(types...) {
			err = wrong("fields."+part, "field %s is of type %v, which is no %s", given, p.field.GetDataType(), part)
		}
		if err == nil && len(p.path) > 0 && len(first) > 0 && !slices.ContainsFunc(first, func(r *record) bool { return textOf(p.value(r)) != "" }) {
			m.note("None of the first %d rows has %s, which the file names for the %s.", len(first), given, part)
		}
		return &p, named, err
	}
	if f := d.wordsInput(m.words); part == "text" && f != nil {
		return &place{field: f}, "the input of the BM25 function", nil
	}
	for _, name := range usual {
		for _, f := range d.fields {
			if p := (place{field: f}); strings.EqualFold(f.GetName(), name) && p.is(types...) && !m.isKey(f) {
				return &p, "the field with a usual name", nil
			}
		}
	}
	for _, name := range usual {
		for _, f := range d.fields {
			p := place{f, []string{name}}
			if f.GetDataType() == schemapb.DataType_JSON && slices.ContainsFunc(first, func(r *record) bool { return textOf(p.value(r)) != "" }) {
				return &p, "a member with a usual name, in the first rows", nil
			}
		}
	}
	if part == "text" {
		if f := m.onlyText(d); f != nil {
			return &place{field: f}, "the only field of texts", nil
		}
	}
	return nil, "", nil
}

// onlyText is the field of strings where there is one beside the key.
func (m *mapping) onlyText(d *description) (only *schemapb.FieldSchema) {
	for _, f := range d.fields {
		if m.isKey(f) || !(place{field: f}).is(texts...) {
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
func (m *mapping) isKey(f *schemapb.FieldSchema) bool { return f == m.key || f == m.id.field }

// uses reports whether a field is another part of the entries.
func (m *mapping) uses(f *schemapb.FieldSchema) bool {
	if m.isKey(f) {
		return true
	}
	for _, p := range []*place{m.text, m.label, m.context} {
		if p != nil && len(p.path) == 0 && p.field == f {
			return true
		}
	}
	return false
}
