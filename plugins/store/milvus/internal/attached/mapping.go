package attached

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"

	"github.com/racflow/racflow/sdk"
)

// mapping says which field holds which part of an entry.
type mapping struct {
	key, vector          *schemapb.FieldSchema // key: the primary one
	id                   place                 // the key, most often
	text, label, context *place
	words                string // the sparse field that a BM25 function fills; empty: none
	meta                 []metadata
	found                []sdk.AttachedField
	notes                []string
}

// metadata is a place that metadata comes from: one value, or all members of a JSON
// field.
type metadata struct {
	place
	members bool
}

// Usual names, the most telling first.
var (
	textNames    = []string{"text", "content", "page_content", "chunk", "chunk_text", "body", "document", "passage"}
	labelNames   = []string{"label", "intent", "category", "class"}
	contextNames = []string{"title", "heading", "context", "subject"}
)

var (
	texts   = []schemapb.DataType{schemapb.DataType_VarChar, schemapb.DataType_String, schemapb.DataType_Text}
	whole   = []schemapb.DataType{schemapb.DataType_Int64, schemapb.DataType_Int32, schemapb.DataType_Int16, schemapb.DataType_Int8}
	scalars = slices.Concat(texts, whole, []schemapb.DataType{schemapb.DataType_Float, schemapb.DataType_Double, schemapb.DataType_Bool})
	floats  = []schemapb.DataType{schemapb.DataType_FloatVector, schemapb.DataType_Float16Vector, schemapb.DataType_BFloat16Vector}
)

// newMapping finds the fields that the schema shows: id, vector and words.
func newMapping(d *description, given Fields) (*mapping, error) {
	m := &mapping{}
	for _, find := range []func(*description, Fields) error{m.findID, m.findVector, m.findWords} {
		if err := find(d, given); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// findParts finds the others. The first rows show what members there are.
func (m *mapping) findParts(d *description, given Fields, first []*record) error {
	for _, part := range []struct {
		name, given string
		usual       []string
		types       []schemapb.DataType
		to          **place
	}{
		{"text", given.Text, textNames, texts, &m.text},
		{"label", given.Label, labelNames, slices.Concat(texts, whole), &m.label},
		{"context", given.Context, contextNames, texts, &m.context},
	} {
		p, why, err := m.findPart(d, part.name, part.given, part.usual, part.types, first)
		if err != nil {
			return err
		}
		if *part.to = p; p != nil {
			m.add(part.name, p.String(), why)
		}
	}
	if m.text == nil && m.label == nil {
		return wrong("fields.text", "no field of collection %q has a usual name for texts; name it: fields { text = \"...\" }. The fields are %s", d.name, d.names())
	}
	if err := m.findMeta(d, given.Meta); err != nil {
		return err
	}
	m.explain(d)
	return nil
}

func (m *mapping) add(part, field, why string) {
	m.found = append(m.found, sdk.AttachedField{Part: part, Field: field, Why: why})
}

const named = "named in the file"

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
		if err == nil && len(p.path) > 0 && len(first) > 0 && !slices.ContainsFunc(first, func(r *record) bool { return p.value(r) != nil }) {
			m.note("None of the first %d rows has %s, which the file names for the %s.", len(first), given, part)
		}
		return &p, named, err
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
			if f.GetDataType() == schemapb.DataType_JSON && slices.ContainsFunc(first, func(r *record) bool { return p.value(r) != nil }) {
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

// textOf a value: whole numbers in decimal; what is no text is none.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case float64: // of JSON
		return strconv.FormatFloat(v, 'f', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}
