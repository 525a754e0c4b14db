package mapping

import (
	"maps"
	"slices"
	"strings"

	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"

	"github.com/racflow/racflow/plugins/store/milvus/internal/column"
	"github.com/racflow/racflow/sdk"
)

// findMeta reads what the file names, or takes all that is no other part.
func (m *Mapping) findMeta(d *Schema, given []string) error {
	keys := map[string]string{}
	for _, text := range given {
		p, err := d.find("fields.meta", text)
		if err != nil {
			return err
		}
		switch members := p.Is(schemapb.DataType_JSON); {
		case !members && len(p.path) == 0 && !p.Is(Scalars...):
			return Wrong("fields.meta", "field %s is of type %v, which has no place in metadata: only strings, numbers and bools have", text, p.Field.GetDataType())
		case !members && keys[p.key()] != "":
			return Wrong("fields.meta", "%s and %s would both be metadata %q", keys[p.key()], text, p.key())
		default:
			m.meta = append(m.meta, metadata{p, members})
			if !members {
				keys[p.key()] = text
			}
		}
	}
	if given == nil {
		for _, f := range d.Fields {
			if p := (Place{Field: f}); p.Is(Scalars...) && !m.uses(f) {
				m.meta = append(m.meta, metadata{Place: p})
			}
		}
		for _, f := range d.Fields {
			if p := (Place{Field: f}); p.Is(schemapb.DataType_JSON) {
				m.meta = append(m.meta, metadata{p, true})
			}
		}
	}
	why := named
	if given == nil {
		why = "all other scalar fields and members"
	}
	var names []string
	for _, p := range m.meta {
		names = append(names, p.String())
	}
	if len(names) > 0 {
		m.add("meta", List(names), why)
	}
	return nil
}

// ReadMeta makes the metadata of a row; nil: none. Of two places with one key the first
// with a value counts.
func (m *Mapping) ReadMeta(r *column.Row) sdk.Meta {
	meta := sdk.Meta{}
	set := func(key string, v any) {
		switch v := v.(type) {
		case int64:
			if _, ok := meta[key]; !ok {
				meta[key] = float64(v)
			}
		case string, float64, bool:
			if _, ok := meta[key]; !ok {
				meta[key] = v
			}
		}
	}
	for _, from := range m.meta {
		if !from.members {
			set(from.key(), from.value(r))
			continue
		}
		object, _ := from.value(r).(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(object)) {
			if m.takes(from, key) {
				set(key, object[key])
			}
		}
	}
	if len(meta) == 0 {
		return nil
	}
	return meta
}

// takes reports whether a member of a JSON field is metadata.
func (m *Mapping) takes(from metadata, key string) bool {
	if strings.HasPrefix(key, "_") {
		return false
	}
	for _, p := range []*Place{m.text, m.Label, m.context} {
		if p != nil && p.Field == from.Field && slices.Equal(p.path, append(slices.Clone(from.path), key)) {
			return false
		}
	}
	return true
}
