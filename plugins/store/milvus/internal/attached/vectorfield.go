package attached

import (
	"fmt"
	"slices"
	"strings"

	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"
)

// The metrics that can be read as cosines.
const (
	metricCosine = "COSINE"
	metricIP     = "IP"
	metricL2     = "L2"
	metricBM25   = "BM25"
)

// findVector takes the field that the file names, or the only one of vectors of floats.
func (m *mapping) findVector(d *description, given Fields) error {
	var fields []*schemapb.FieldSchema
	var names, others []string
	for _, f := range d.fields {
		switch t := f.GetDataType(); {
		case slices.Contains(floats, t):
			fields, names = append(fields, f), append(names, f.GetName())
		case t == schemapb.DataType_BinaryVector || t == schemapb.DataType_Int8Vector:
			others = append(others, fmt.Sprintf("%s (%v, measured by %s)", f.GetName(), t, d.indexes[f.GetName()]["metric_type"]))
		}
	}
	why := "the only field of vectors"
	switch {
	case given.Vector != "":
		why = named
		f := d.field(given.Vector)
		switch {
		case f == nil:
			return wrong("fields.vector", "collection %q has no field %q; it has %s", d.name, given.Vector, d.names())
		case !slices.Contains(fields, f):
			return wrong("fields.vector", "field %s is of type %v: it takes one of FloatVector, Float16Vector or BFloat16Vector to compare with an embedder's vectors", given.Vector, f.GetDataType())
		}
		m.vector = f
	case len(fields) == 1:
		m.vector = fields[0]
	case len(fields) > 1:
		return wrong("fields.vector", "collection %q has several fields of vectors: %s. Name the one that the embedder of this file made: fields { vector = %q }", d.name, list(names), names[0])
	case len(others) > 0:
		return wrong("collection", "collection %q has no vectors of floats, only %s, which cannot be compared with an embedder's", d.name, list(others))
	default:
		return wrong("collection", "collection %q has no field of vectors", d.name)
	}
	m.add("vector", m.vector.GetName(), why)
	switch metric := m.metric(d); metric {
	case metricCosine, metricIP, metricL2:
		return nil
	case "":
		return wrong("collection", "field %s of collection %q has no index, without which the server cannot search it: its owner has to make one, best with the metric COSINE", m.vector.GetName(), d.name)
	default:
		return wrong("collection", "field %s of collection %q is measured by %s; racflow reads COSINE, IP and L2", m.vector.GetName(), d.name, metric)
	}
}

func (m *mapping) metric(d *description) string {
	return strings.ToUpper(d.indexes[m.vector.GetName()]["metric_type"])
}

// findWords takes the sparse field that the file names, or the first that a BM25
// function fills. Milvus Lite 2 names no functions, only what they fill and by what
// metric it is searched.
func (m *mapping) findWords(d *description, given Fields) error {
	var made, others []string
	for _, f := range d.fields {
		if f.GetDataType() != schemapb.DataType_SparseFloatVector {
			continue
		}
		if strings.EqualFold(d.indexes[f.GetName()]["metric_type"], metricBM25) {
			made = append(made, f.GetName())
		} else {
			others = append(others, f.GetName())
		}
	}
	switch {
	case given.Sparse != "" && slices.Contains(made, given.Sparse):
		m.words = given.Sparse
		m.add("sparse", m.words, named)
	case given.Sparse != "" && !slices.Contains(others, given.Sparse):
		return wrong("fields.sparse", "%s is no sparse field of collection %q; it has %s", given.Sparse, d.name, d.names())
	case given.Sparse == "" && len(made) > 0:
		m.words = made[0]
		m.add("sparse", m.words, "filled by a BM25 function of the server")
	case len(others) > 0:
		m.note("No BM25 function of the server fills %s, so a text cannot be searched in it: hybrid searches are dense.", list(others))
		return nil
	default:
		m.note("No field is searched by words: hybrid searches are dense. A BM25 function of the collection would change that.")
		return nil
	}
	m.note("Lexical scores are those of the server's BM25, with its own analyzer.")
	return nil
}

func (m *mapping) note(format string, args ...any) {
	m.notes = append(m.notes, fmt.Sprintf(format, args...))
}

// explain says what entries go without.
func (m *mapping) explain(d *description) {
	if m.label == nil {
		m.note("Entries have no label.")
	}
	if m.text == nil {
		m.note("Entries have no text.")
	}
	var left []string
	for _, f := range d.fields {
		p := place{field: f}
		if !p.is(scalars...) && !p.is(schemapb.DataType_JSON) && f != m.vector && f.GetDataType() != schemapb.DataType_SparseFloatVector {
			left = append(left, fmt.Sprintf("%s (%v)", f.GetName(), f.GetDataType()))
		}
	}
	if len(left) > 0 {
		m.note("Left out, for their types: %s.", list(left))
	}
	if d.isAlias {
		m.note("The server does not say which collection the alias %s leads to: after a swap, searches reach the other one at once.", d.name)
	}
	if d.anonymous {
		m.note("The server gives collections no ids: one that is made anew with the same name and fields looks like the same.")
	}
}
