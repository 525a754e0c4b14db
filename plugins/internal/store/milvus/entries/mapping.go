package entries

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
)

// This file maps fields of another program's collection to parts of an entry. It converts rows into entries, and
// translates filters of entries into expressions over the fields.
//
// # Where the parts of an entry come from
//
// The id is the primary key; integers are written in decimal. The vector is the only field of float vectors. Text,
// label and context are fields, or members of JSON fields and of the dynamic field, with usual names; the first rows
// show which members exist. Every other string, number or bool is metadata, with the field's or the member's own name
// as its key. If two have the same name, a scalar field comes first, then JSON fields in the order of the schema,
// then the dynamic field. Frameworks use members with a leading underscore internally; these are left out unless the
// file names them.
//
// In the file, a place is the name of a field, a key of the dynamic field, or a member: metadata["lang"]. NULL means
// no text, no label, or missing metadata.
//
// # Filters
//
// A filter is translated exactly if engines agree on its meaning, and otherwise to a weaker one; returned rows are
// then checked. Such a search reads more rows, up to 16,384.

// Mapping says which field holds which part of an entry.
type Mapping struct {
	Key, Vector          *schemapb.FieldSchema // Key is the primary key
	ID                   Place                 // usually the key
	text, Label, context *Place
	Words                string              // the sparse field that a BM25 function fills; empty: none
	meta                 []Place             // one value each, or all members of a JSON field
	own                  bool                // the rows are racflow's own: they have a hash, and all members are metadata
	Found                []sdk.AttachedField // for people, like Notes
	Notes                []string
}

// wrong is an error about an argument of the file.
func wrong(argument, format string, args ...any) error {
	name, path, _ := strings.Cut(argument, ".")
	e := &sdk.ArgumentError{Argument: name, Err: fmt.Errorf(format, args...)}
	if path != "" {
		e.Path = []string{path}
	}
	return sdk.Invalid(e)
}

// list formats the first names of a list.
func list(names []string) string {
	const most = 20
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// Fields are the places of an entry's parts: the name of a field, a key of the
// dynamic field, or a member such as metadata["lang"].
type Fields struct {
	ID      string   `config:"id" doc:"What tells entries apart: the primary key if not given."`
	Text    string   `config:"text" doc:"The text."`
	Vector  string   `config:"vector" doc:"The vector, of floats of 32 bits."`
	Label   string   `config:"label" doc:"The label."`
	Context string   `config:"context" doc:"What stands before the text, such as a title."`
	Sparse  string   `config:"sparse" doc:"What the server's BM25 function makes of the text; searches by words use it."`
	Meta    []string `config:"meta" doc:"The metadata that filters and rules see; of a JSON field all its members. All scalar fields and members if not given."`
}

// Usual names, the most specific first.
var (
	textNames    = []string{"text", "content", "page_content", "chunk", "chunk_text", "body", "document", "passage"}
	labelNames   = []string{"label", "intent", "category", "class"}
	contextNames = []string{"title", "heading", "context", "subject"}
)

// Types of fields.
var (
	whole   = []schemapb.DataType{schemapb.DataType_Int64, schemapb.DataType_Int32, schemapb.DataType_Int16, schemapb.DataType_Int8}
	scalars = slices.Concat(texts, whole, []schemapb.DataType{schemapb.DataType_Float, schemapb.DataType_Double, schemapb.DataType_Bool})

	texts = []schemapb.DataType{schemapb.DataType_VarChar, schemapb.DataType_String, schemapb.DataType_Text}
)

// newMapping finds the parts that the schema alone shows: id, vector and words.
func newMapping(d *Schema, given Fields) (*Mapping, error) {
	m := &Mapping{}
	for _, find := range []func(*Schema, Fields) error{m.findID, m.findVector, m.findWords} {
		if err := find(d, given); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// findParts finds the other parts. The first rows show which members exist.
func (m *Mapping) findParts(d *Schema, given Fields, first []*table.ReplyRow) error {
	for _, part := range []struct {
		name, given string
		usual       []string
		types       []schemapb.DataType
		to          **Place
	}{
		{"text", given.Text, textNames, texts, &m.text},
		{"label", given.Label, labelNames, slices.Concat(texts, whole), &m.Label},
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
		return wrong("fields.text", "no field of collection %q has a usual name for texts; name it: fields { text = \"...\" }. It has %s", d.Name, d.names())
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

// textOf returns a value as text: integers in decimal. It returns an empty text for values of other types.
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

func (m *Mapping) findID(d *Schema, given Fields) error {
	if m.Key = d.first((*schemapb.FieldSchema).GetIsPrimaryKey); m.Key == nil {
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
	case !p.Is(texts...) && !p.Is(whole...):
		return wrong("fields.id", "%s cannot tell rows apart: an id is a field of strings or of whole numbers", given.ID)
	}
	m.ID = p
	m.add("id", given.ID, named)
	if p.Field != m.Key {
		m.note("Ids come from %s, which is not the primary key: of several rows with one id a search finds the best.", given.ID)
	}
	return nil
}

// findPart finds a field for a part, or else a member that the first rows have.
func (m *Mapping) findPart(d *Schema, part, given string, usual []string, types []schemapb.DataType, first []*table.ReplyRow) (*Place, string, error) {
	if given != "" {
		p, err := d.find("fields."+part, given)
		if err == nil && len(p.path) == 0 && !p.Is(types...) {
			err = wrong("fields."+part, "field %s is of type %v, which is no %s", given, p.Field.GetDataType(), part)
		}
		if err == nil && len(p.path) > 0 && len(first) > 0 && !slices.ContainsFunc(first, func(r *table.ReplyRow) bool { return textOf(p.value(r)) != "" }) {
			m.note("None of the first %d rows has %s, which the file names for the %s.", len(first), given, part)
		}
		return &p, named, err
	}
	if f := d.wordsInput(m.Words); part == "text" && f != nil {
		return &Place{Field: f}, "the input of the BM25 function", nil
	}
	var fields []*schemapb.FieldSchema
	for _, f := range d.Fields {
		if (Place{Field: f}).Is(types...) && !m.isKey(f) {
			fields = append(fields, f)
		}
	}
	for _, name := range usual {
		for _, f := range fields {
			if strings.EqualFold(f.GetName(), name) {
				return &Place{Field: f}, "the field with a usual name", nil
			}
		}
	}
	for _, name := range usual {
		for _, f := range d.Fields {
			p := Place{f, []string{name}}
			if f.GetDataType() == schemapb.DataType_JSON && slices.ContainsFunc(first, func(r *table.ReplyRow) bool { return textOf(p.value(r)) != "" }) {
				return &p, "a member with a usual name, in the first rows", nil
			}
		}
	}
	if part == "text" && len(fields) == 1 {
		return &Place{Field: fields[0]}, "the only field of texts", nil
	}
	return nil, "", nil
}

// isKey reports whether a field identifies rows.
func (m *Mapping) isKey(f *schemapb.FieldSchema) bool { return f == m.Key || f == m.ID.Field }

// uses reports whether a field already is another part of the entries.
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

// Place is where a value is: a field, or a member of a JSON field.
type Place struct {
	Field *schemapb.FieldSchema
	path  []string // names of the members, the outermost first
}

var (
	memberPattern = regexp.MustCompile(`^([^\[\]]+)((?:\["(?:[^"\\]|\\.)*"\])+)$`)
	stringPattern = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
)

// find parses a place from the file.
func (d *Schema) find(argument, text string) (Place, error) {
	if f := d.field(text); f != nil {
		return Place{Field: f}, nil
	}
	if parts := memberPattern.FindStringSubmatch(text); parts != nil {
		f := d.field(parts[1])
		if f != nil && f.GetDataType() != schemapb.DataType_JSON {
			return Place{}, wrong(argument, "%s: field %s is of type %v, and only JSON has members", text, f.GetName(), f.GetDataType())
		}
		var path []string
		var err error
		for _, quoted := range stringPattern.FindAllString(parts[2], -1) {
			var name string
			err = errors.Join(err, json.Unmarshal([]byte(quoted), &name))
			path = append(path, name)
		}
		if f != nil && err == nil {
			return Place{f, path}, nil
		}
	} else if f := d.field(dynamicField); f != nil {
		return Place{f, []string{text}}, nil
	}
	return Place{}, wrong(argument, "collection %q has no field %q; it has %s", d.Name, text, d.names())
}

// String formats a place as in the file.
func (p Place) String() string {
	name := p.Field.GetName()
	if p.Field.GetIsDynamic() && len(p.path) == 1 {
		return p.path[0]
	}
	for _, key := range p.path {
		quoted, err := json.Marshal(key)
		if err != nil {
			panic(err) // strings always encode
		}
		name += "[" + string(quoted) + "]"
	}
	return name
}

// key returns the metadata key of a place.
func (p Place) key() string {
	if len(p.path) > 0 {
		return p.path[len(p.path)-1]
	}
	return p.Field.GetName()
}

// Is reports whether the place is a whole field of one of the types.
func (p Place) Is(types ...schemapb.DataType) bool {
	return len(p.path) == 0 && slices.Contains(types, p.Field.GetDataType())
}

// value returns a row's value at the place: a string, an int64, a float64, a bool or decoded JSON; nil: there is
// none.
func (p Place) value(r *table.ReplyRow) any {
	v := r.Value(p.Field.GetName())
	for _, key := range p.path {
		object, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = object[key]
	}
	return v
}

// dynamicField is the name of the field for values without a declared field.
const dynamicField = "$meta"

// Schema describes a collection, as reported by the server.
type Schema struct {
	Name      string // the collection's own name, even if an alias was given
	Identity  string // identifies this collection, as far as the server allows
	IsAlias   bool   // Name is an alias: the server does not report the collection's own name
	Fields    []*schemapb.FieldSchema
	Functions []*schemapb.FunctionSchema
	Indexes   map[string]map[string]string // by field: its parameters, including index_type and metric_type
}

// field returns the field with a name; nil: there is none.
func (d *Schema) field(name string) *schemapb.FieldSchema {
	return d.first(func(f *schemapb.FieldSchema) bool { return f.GetName() == name })
}

func (d *Schema) first(is func(*schemapb.FieldSchema) bool) *schemapb.FieldSchema {
	if at := slices.IndexFunc(d.Fields, is); at >= 0 {
		return d.Fields[at]
	}
	return nil
}

// wordsInput returns the field that a BM25 function reads to fill another one; nil: unknown.
func (d *Schema) wordsInput(filled string) *schemapb.FieldSchema {
	for _, f := range d.Functions {
		if slices.Contains(f.GetOutputFieldNames(), filled) && len(f.GetInputFieldNames()) == 1 {
			return d.field(f.GetInputFieldNames()[0])
		}
	}
	return nil
}

// names lists the fields and their types, for people.
func (d *Schema) names() string {
	var names []string
	for _, f := range d.Fields {
		names = append(names, fmt.Sprintf("%s (%v)", f.GetName(), f.GetDataType()))
	}
	return list(names)
}
