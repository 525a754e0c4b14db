package mapping

import (
	"fmt"
	"slices"
	"strings"

	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"
)

// The metrics that can be read as cosines.
const (
	MetricCosine = "COSINE"
	MetricIP     = "IP"
	MetricL2     = "L2"
	MetricBM25   = "BM25"
)

// findVector takes the field that the file names, or the only one of vectors of floats.
func (m *Mapping) findVector(d *Schema, given Fields) error {
	var fields []*schemapb.FieldSchema
	var names, others []string
	for _, f := range d.Fields {
		switch t := f.GetDataType(); {
		case slices.Contains(floats, t):
			fields, names = append(fields, f), append(names, f.GetName())
		case t == schemapb.DataType_BinaryVector || t == schemapb.DataType_Int8Vector:
			others = append(others, fmt.Sprintf("%s (%v, measured by %s)", f.GetName(), t, d.Indexes[f.GetName()]["metric_type"]))
		}
	}
	why := "the only field of vectors"
	switch {
	case given.Vector != "":
		why = named
		f := d.field(given.Vector)
		switch {
		case f == nil:
			return Wrong("fields.vector", "collection %q has no field %q; it has %s", d.Name, given.Vector, d.names())
		case !slices.Contains(fields, f):
			return Wrong("fields.vector", "field %s is of type %v: it takes one of FloatVector, Float16Vector or BFloat16Vector to compare with an embedder's vectors", given.Vector, f.GetDataType())
		}
		m.Vector = f
	case len(fields) == 1:
		m.Vector = fields[0]
	case len(fields) > 1:
		return Wrong("fields.vector", "collection %q has several fields of vectors: %s. Name the one that the embedder of this file made: fields { vector = %q }", d.Name, List(names), names[0])
	case len(others) > 0:
		return Wrong("collection", "collection %q has no vectors of floats, only %s, which cannot be compared with an embedder's", d.Name, List(others))
	default:
		return Wrong("collection", "collection %q has no field of vectors", d.Name)
	}
	m.add("vector", m.Vector.GetName(), why)
	switch metric := m.Metric(d); metric {
	case MetricCosine, MetricIP, MetricL2:
		return nil
	case "":
		return Wrong("collection", "field %s of collection %q has no index, without which the server cannot search it: its owner has to make one, best with the metric COSINE", m.Vector.GetName(), d.Name)
	default:
		return Wrong("collection", "field %s of collection %q is measured by %s; racflow reads COSINE, IP and L2", m.Vector.GetName(), d.Name, metric)
	}
}

// Metric is what the index of the vectors measures by; empty: there is none.
func (m *Mapping) Metric(d *Schema) string {
	return strings.ToUpper(d.Indexes[m.Vector.GetName()]["metric_type"])
}

// findWords takes the sparse field that the file names, or the first that a BM25
// function fills. Milvus Lite 2 names no functions, only what they fill and by what
// metric it is searched.
func (m *Mapping) findWords(d *Schema, given Fields) error {
	var made, others []string
	for _, f := range d.Fields {
		if f.GetDataType() != schemapb.DataType_SparseFloatVector {
			continue
		}
		if strings.EqualFold(d.Indexes[f.GetName()]["metric_type"], MetricBM25) {
			made = append(made, f.GetName())
		} else {
			others = append(others, f.GetName())
		}
	}
	switch {
	case given.Sparse != "" && slices.Contains(made, given.Sparse):
		m.Words = given.Sparse
		m.add("sparse", m.Words, named)
	case given.Sparse != "" && !slices.Contains(others, given.Sparse):
		return Wrong("fields.sparse", "%s is no sparse field of collection %q; it has %s", given.Sparse, d.Name, d.names())
	case given.Sparse == "" && len(made) > 0:
		m.Words = made[0]
		m.add("sparse", m.Words, "filled by a BM25 function of the server")
	case len(others) > 0:
		m.note("No BM25 function of the server fills %s, so a text cannot be searched in it: hybrid searches are dense.", List(others))
		return nil
	default:
		m.note("No field is searched by words: hybrid searches are dense. A BM25 function of the collection would change that.")
		return nil
	}
	m.note("Lexical scores are those of the server's BM25, with its own analyzer.")
	return nil
}

func (m *Mapping) note(format string, args ...any) {
	m.Notes = append(m.Notes, fmt.Sprintf(format, args...))
}

// explain says what entries go without.
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
		if !p.Is(Scalars...) && !p.Is(schemapb.DataType_JSON) && f != m.Vector && f.GetDataType() != schemapb.DataType_SparseFloatVector {
			left = append(left, fmt.Sprintf("%s (%v)", f.GetName(), f.GetDataType()))
		}
	}
	if len(left) > 0 {
		m.note("Left out, for their types: %s.", List(left))
	}
	if d.IsAlias {
		m.note("The server does not say which collection the alias %s leads to: after a swap, searches reach the other one at once.", d.Name)
	}
	if d.Anonymous {
		m.note("The server gives collections no ids: one that is made anew with the same name and fields looks like the same.")
	}
}
