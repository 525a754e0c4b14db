package mapping

import (
	"slices"
	"strconv"

	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"

	"github.com/racflow/racflow/plugins/store/milvus/internal/column"
	"github.com/racflow/racflow/sdk"
)

// Mapping says which field holds which part of an entry.
type Mapping struct {
	Key, Vector          *schemapb.FieldSchema // key: the primary one
	ID                   Place                 // the key, most often
	text, Label, context *Place
	Words                string // the sparse field that a BM25 function fills; empty: none
	meta                 []metadata
	Found                []sdk.AttachedField // for people, as are Notes
	Notes                []string
}

// metadata is a place that metadata comes from: one value, or all members of a JSON
// field.
type metadata struct {
	Place
	members bool
}

// Usual names, the most telling first.
var (
	textNames    = []string{"text", "content", "page_content", "chunk", "chunk_text", "body", "document", "passage"}
	labelNames   = []string{"label", "intent", "category", "class"}
	contextNames = []string{"title", "heading", "context", "subject"}
)

// Types of fields.
var (
	Whole   = []schemapb.DataType{schemapb.DataType_Int64, schemapb.DataType_Int32, schemapb.DataType_Int16, schemapb.DataType_Int8}
	Scalars = slices.Concat(texts, Whole, []schemapb.DataType{schemapb.DataType_Float, schemapb.DataType_Double, schemapb.DataType_Bool})

	texts  = []schemapb.DataType{schemapb.DataType_VarChar, schemapb.DataType_String, schemapb.DataType_Text}
	floats = []schemapb.DataType{schemapb.DataType_FloatVector, schemapb.DataType_Float16Vector, schemapb.DataType_BFloat16Vector}
)

// New finds the fields that the schema shows: id, vector and words.
func New(d *Schema, given Fields) (*Mapping, error) {
	m := &Mapping{}
	for _, find := range []func(*Schema, Fields) error{m.findID, m.findVector, m.findWords} {
		if err := find(d, given); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// FindParts finds the others. The first rows show what members there are.
func (m *Mapping) FindParts(d *Schema, given Fields, first []*column.Row) error {
	for _, part := range []struct {
		name, given string
		usual       []string
		types       []schemapb.DataType
		to          **Place
	}{
		{"text", given.Text, textNames, texts, &m.text},
		{"label", given.Label, labelNames, slices.Concat(texts, Whole), &m.Label},
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
	if m.text == nil && m.Label == nil {
		return Wrong("fields.text", "no field of collection %q has a usual name for texts; name it: fields { text = \"...\" }. The fields are %s", d.Name, d.names())
	}
	if err := m.findMeta(d, given.Meta); err != nil {
		return err
	}
	m.explain(d)
	return nil
}

func (m *Mapping) add(part, field, why string) {
	m.Found = append(m.Found, sdk.AttachedField{Part: part, Field: field, Why: why})
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
