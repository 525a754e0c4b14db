package attached

import (
	"slices"
	"strconv"

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
