package mapping

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"

	"github.com/racflow/racflow/plugins/store/milvus/internal/column"
)

// Place is where a value is: a field, or a member of a JSON field.
type Place struct {
	Field *schemapb.FieldSchema
	path  []string // names of members, from the outermost
}

var memberPattern = regexp.MustCompile(`^([^\[\]]+)((?:\["(?:[^"\\]|\\.)*"\])+)$`)

// find reads a place as people write it.
func (d *Schema) find(argument, text string) (Place, error) {
	if f := d.field(text); f != nil {
		return Place{Field: f}, nil
	}
	if parts := memberPattern.FindStringSubmatch(text); parts != nil {
		f := d.field(parts[1])
		path, ok := members(parts[2])
		switch {
		case f != nil && f.GetDataType() == schemapb.DataType_JSON && ok:
			return Place{f, path}, nil
		case f != nil:
			return Place{}, Wrong(argument, "%s: field %s is of type %v, and only JSON has members", text, f.GetName(), f.GetDataType())
		}
	} else if f := d.field(DynamicField); f != nil {
		return Place{f, []string{text}}, nil
	}
	return Place{}, Wrong(argument, "collection %q has no field %q; it has %s", d.Name, text, d.names())
}

// members reads ["a"]["b"].
func members(text string) (path []string, ok bool) {
	for text != "" {
		var one []string
		decoder := json.NewDecoder(strings.NewReader(text))
		if decoder.Decode(&one) != nil || len(one) != 1 {
			return nil, false
		}
		path, text = append(path, one[0]), text[decoder.InputOffset():]
	}
	return path, true
}

// String writes a place as people do.
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

// key is the name of a place in metadata.
func (p Place) key() string {
	if len(p.path) > 0 {
		return p.path[len(p.path)-1]
	}
	return p.Field.GetName()
}

// Is reports whether the value is a field of one of the types.
func (p Place) Is(types ...schemapb.DataType) bool {
	for _, t := range types {
		if len(p.path) == 0 && p.Field.GetDataType() == t {
			return true
		}
	}
	return false
}

// value is what a row has there: a string, an int64, a float64, a bool or, for JSON, what it holds; nil: nothing.
func (p Place) value(r *column.Row) any {
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
