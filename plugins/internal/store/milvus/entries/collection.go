package entries

import (
	"log/slog"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
)

// Collection is a collection whose rows are read as entries. It is immutable and safe for concurrent use.
type Collection struct {
	*Schema
	*Mapping
	own       *table.Table      // nil: the collection belongs to another program
	rows      func() table.Rows // with the consistency that a call needs
	server    *table.Server     // of an attached collection
	arguments Arguments
	params    map[string]string // search parameters of the vectors' index, from the file
	log       *slog.Logger
	dimension int
	entries   int // when it was attached
}

// Own returns one of racflow's own collections, once its table is prepared.
func Own(t *table.Table) (*Collection, error) {
	d := &Schema{Name: t.Collection, Fields: t.Fields(), Indexes: map[string]map[string]string{
		table.FieldVector: {"index_type": t.IndexType, "metric_type": table.MetricIP}, table.FieldBM25: {"metric_type": table.MetricBM25},
	}}
	fields := Fields{ID: table.FieldID, Vector: table.FieldVector, Text: table.FieldText, Label: table.FieldLabel, Context: table.FieldContext, Meta: []string{table.FieldMeta}}
	m, err := newMapping(d, fields)
	if err == nil {
		err = m.findParts(d, fields, nil)
	}
	if err != nil {
		return nil, err
	}
	m.own = true
	return &Collection{
		Schema: d, Mapping: m, own: t, rows: func() table.Rows { return t.Rows(false) },
		arguments: Arguments{Normalized: true}, params: t.Options.SearchParams, dimension: t.Schema.Dimension,
	}, nil
}

// vectorOf returns the vector of a row; nil: it was not requested, or entries have none.
func (c *Collection) vectorOf(r *table.ReplyRow) []float32 {
	x, _ := r.Value(c.Vector.GetName()).([]float32)
	return x[:min(len(x), c.dimension)]
}
