package entries

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
)

// outputs returns the names of the fields to request. The key is always included: if no field is requested, some
// servers return all fields.
func (m *Mapping) outputs(withTexts, withMeta, withVector bool) []string {
	places := []*Place{{Field: m.Key}, &m.ID, m.Label}
	if withTexts {
		places = append(places, m.text, m.context)
	}
	if withTexts || withMeta {
		for i := range m.meta {
			places = append(places, &m.meta[i])
		}
	}
	if withVector {
		places = append(places, &Place{Field: m.Vector})
	}
	var names []string
	for _, p := range places {
		if p != nil && !slices.Contains(names, p.Field.GetName()) {
			names = append(names, p.Field.GetName())
		}
	}
	if m.own {
		names = append(names, table.FieldHash)
	}
	return names
}

// keyOf returns the primary key of a row, as text.
func (m *Mapping) keyOf(r *table.ReplyRow) string { return textOf(r.Value(m.Key.GetName())) }

// idOf returns the id of an entry; empty: the row has none and is no entry.
func (m *Mapping) idOf(r *table.ReplyRow) string { return textOf(m.ID.value(r)) }

// labelOf returns the label of an entry; empty: it has none.
func (m *Mapping) labelOf(r *table.ReplyRow) string { return m.part(m.Label, r) }

func (m *Mapping) part(p *Place, r *table.ReplyRow) string {
	if p == nil {
		return ""
	}
	return textOf(p.value(r))
}

// entry converts a row into an entry.
func (m *Mapping) entry(r *table.ReplyRow, withTexts bool) sdk.Entry {
	e := sdk.Entry{ID: m.idOf(r), Label: m.labelOf(r)}
	if hash, _ := r.Value(table.FieldHash).(string); m.own && hash != "" {
		e.Hash, _ = hex.DecodeString(hash) // if the hash is damaged, the engine rewrites the entry
	}
	if withTexts {
		e.Text, e.Context, e.Meta = m.part(m.text, r), m.part(m.context, r), m.readMeta(r)
	}
	return e
}

// findMeta uses the metadata that the file names, or everything that is no other part.
func (m *Mapping) findMeta(d *Schema, given []string) error {
	why := named
	keys := map[string]string{}
	for _, text := range given {
		p, err := d.find("fields.meta", text)
		switch {
		case err != nil:
			return err
		case p.Is(schemapb.DataType_JSON):
		case len(p.path) == 0 && !p.Is(scalars...):
			return wrong("fields.meta", "field %s is of type %v, which has no place in metadata: only strings, numbers and bools have", text, p.Field.GetDataType())
		case keys[p.key()] != "":
			return wrong("fields.meta", "%s and %s would both be metadata %q", keys[p.key()], text, p.key())
		default:
			keys[p.key()] = text
		}
		m.meta = append(m.meta, p)
	}
	if given == nil {
		why = "all other scalar fields and members"
		for _, types := range [][]schemapb.DataType{scalars, {schemapb.DataType_JSON}} {
			for _, f := range d.Fields {
				if p := (Place{Field: f}); p.Is(types...) && !m.uses(f) {
					m.meta = append(m.meta, p)
				}
			}
		}
	}
	var names []string
	for _, p := range m.meta {
		names = append(names, p.String())
	}
	if len(names) > 0 {
		m.add("meta", list(names), why)
	}
	return nil
}

// readMeta returns the metadata of a row; nil: none. If two places have the same key, the first one with a value
// counts.
func (m *Mapping) readMeta(r *table.ReplyRow) sdk.Meta {
	meta := sdk.Meta{}
	for _, from := range m.meta {
		values, members := map[string]any{from.key(): from.value(r)}, from.Is(schemapb.DataType_JSON)
		if members {
			values, _ = from.value(r).(map[string]any)
		}
		for key, v := range values {
			if _, ok := meta[key]; ok || members && !m.takes(from, key) {
				continue
			}
			switch v := v.(type) {
			case int64:
				meta[key] = float64(v)
			case string, float64, bool:
				meta[key] = v
			}
		}
	}
	if len(meta) == 0 {
		return nil
	}
	return meta
}

// takes reports whether a member of a JSON field is metadata.
func (m *Mapping) takes(from Place, key string) bool {
	if m.own || strings.HasPrefix(key, "_") {
		return m.own
	}
	for _, p := range []*Place{m.text, m.Label, m.context} {
		if p != nil && p.Field == from.Field && slices.Equal(p.path, append(slices.Clone(from.path), key)) {
			return false
		}
	}
	return true
}

// findVector uses the field that the file names, or the only field of float vectors.
func (m *Mapping) findVector(d *Schema, given Fields) error {
	var names []string
	for _, f := range d.Fields {
		if f.GetDataType() == schemapb.DataType_FloatVector {
			names = append(names, f.GetName())
		}
	}
	switch f := d.field(given.Vector); {
	case given.Vector != "" && f == nil:
		return wrong("fields.vector", "collection %q has no field %q; it has %s", d.Name, given.Vector, d.names())
	case given.Vector != "" && !slices.Contains(names, given.Vector):
		return wrong("fields.vector", "field %s is of type %v: it takes a FloatVector to compare with an embedder's vectors", given.Vector, f.GetDataType())
	case given.Vector != "":
		m.Vector = f
		m.add("vector", given.Vector, named)
	case len(names) == 0:
		return wrong("collection", "collection %q has no field of vectors of floats to compare with an embedder's; it has %s", d.Name, d.names())
	case len(names) > 1:
		return wrong("fields.vector", "collection %q has several fields of vectors: %s. Name the one that the embedder of this file made: fields { vector = %q }", d.Name, list(names), names[0])
	default:
		m.Vector = d.field(names[0])
		m.add("vector", names[0], "the only field of vectors")
	}
	switch metric := m.metric(d); metric {
	case table.MetricCosine, table.MetricIP, table.MetricL2:
		return nil
	case "":
		return wrong("collection", "field %s of collection %q has no index, without which the server cannot search it: its owner has to make one, best with the metric COSINE", m.Vector.GetName(), d.Name)
	default:
		return wrong("collection", "field %s of collection %q is measured by %s; racflow reads COSINE, IP and L2", m.Vector.GetName(), d.Name, metric)
	}
}

// metric returns the metric of the vectors' index; empty: there is none.
func (m *Mapping) metric(d *Schema) string {
	return strings.ToUpper(d.Indexes[m.Vector.GetName()]["metric_type"])
}

// findWords uses the sparse field that the file names, or the first one that a BM25 function fills. Milvus Lite 2
// does not report functions, only the fields that they fill and their metrics.
func (m *Mapping) findWords(d *Schema, given Fields) error {
	var made []string
	for _, f := range d.Fields {
		if f.GetDataType() == schemapb.DataType_SparseFloatVector && strings.EqualFold(d.Indexes[f.GetName()]["metric_type"], table.MetricBM25) {
			made = append(made, f.GetName())
		}
	}
	switch {
	case slices.Contains(made, given.Sparse):
		m.Words = given.Sparse
		m.add("sparse", m.Words, named)
	case given.Sparse != "" && d.field(given.Sparse).GetDataType() != schemapb.DataType_SparseFloatVector:
		return wrong("fields.sparse", "%s is no sparse field of collection %q; it has %s", given.Sparse, d.Name, d.names())
	case given.Sparse == "" && len(made) > 0:
		m.Words = made[0]
		m.add("sparse", m.Words, "filled by a BM25 function of the server")
	default:
		m.note("No BM25 function of the server fills a sparse field that could be searched by words: hybrid searches are dense.")
		return nil
	}
	m.note("Lexical scores are those of the server's BM25, with its own analyzer.")
	return nil
}

func (m *Mapping) note(format string, args ...any) {
	m.Notes = append(m.Notes, fmt.Sprintf(format, args...))
}

// explain notes which parts the entries lack.
func (m *Mapping) explain(d *Schema) {
	if m.Label == nil {
		m.note("Entries have no label.")
	}
	if m.text == nil {
		m.note("Entries have no text.")
	}
	var left []string
	for _, f := range d.Fields {
		p := Place{Field: f}
		if !p.Is(scalars...) && !p.Is(schemapb.DataType_JSON) && f != m.Vector && f.GetDataType() != schemapb.DataType_SparseFloatVector {
			left = append(left, fmt.Sprintf("%s (%v)", f.GetName(), f.GetDataType()))
		}
	}
	if len(left) > 0 {
		m.note("Left out, for their types: %s.", list(left))
	}
	if d.IsAlias {
		m.note("The server does not say which collection the alias %s leads to: after a swap, searches reach the other one at once.", d.Name)
	}
}
