package column

import (
	"encoding/json"
	"fmt"

	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"
)

// column is one field of rows.
type column struct {
	at    func(i int) any // a string, an int64, a float64, a bool, []float32, or []byte of JSON
	n     int
	valid []bool // nil: no value is NULL
	index []int  // where the value of a row is, if the server left out NULLs
}

// Row is one row. It keeps what it has parsed.
type Row struct {
	columns map[string]*column // of all rows of the reply, by the names of the fields
	i       int
	parsed  map[string]any // JSON fields
}

// Read decodes the fields of a reply of n rows; those of a type that has no place in an
// entry are left out.
func Read(fields []*schemapb.FieldData, n int) ([]*Row, error) {
	columns := map[string]*column{}
	for _, f := range fields {
		c := newColumn(f)
		if c == nil {
			continue
		}
		if len(c.valid) == n && c.n < n {
			c.index = make([]int, n)
			for i, at := 0, 0; i < n; i++ {
				if c.index[i] = at; c.valid[i] {
					at++
				}
			}
		} else if c.n != n {
			return nil, fmt.Errorf("the server returned %d values of field %s for %d rows", c.n, f.GetFieldName(), n)
		}
		columns[f.GetFieldName()] = c
	}
	all := make([]*Row, n)
	for i := range all {
		all[i] = &Row{columns: columns, i: i}
	}
	return all, nil
}

// Length is how many values a field has.
func Length(f *schemapb.FieldData) int {
	if c := newColumn(f); c != nil {
		return c.n
	}
	return 0
}

// Has reports whether a field came with a row.
func (r *Row) Has(field string) bool { return r.columns[field] != nil }

func newColumn(f *schemapb.FieldData) *column {
	c := &column{valid: f.GetValidData()}
	s := f.GetScalars()
	switch data := s.GetData().(type) {
	case *schemapb.ScalarField_StringData:
		values := data.StringData.GetData()
		c.n, c.at = len(values), func(i int) any { return values[i] }
	case *schemapb.ScalarField_LongData:
		values := data.LongData.GetData()
		c.n, c.at = len(values), func(i int) any { return values[i] }
	case *schemapb.ScalarField_IntData:
		values := data.IntData.GetData()
		c.n, c.at = len(values), func(i int) any { return int64(values[i]) }
	case *schemapb.ScalarField_FloatData:
		values := data.FloatData.GetData()
		c.n, c.at = len(values), func(i int) any { return float64(values[i]) }
	case *schemapb.ScalarField_DoubleData:
		values := data.DoubleData.GetData()
		c.n, c.at = len(values), func(i int) any { return values[i] }
	case *schemapb.ScalarField_BoolData:
		values := data.BoolData.GetData()
		c.n, c.at = len(values), func(i int) any { return values[i] }
	case *schemapb.ScalarField_JsonData:
		values := data.JsonData.GetData()
		c.n, c.at = len(values), func(i int) any { return values[i] }
	default:
		return vectorColumn(c, f.GetVectors())
	}
	return c
}

// Value is what a row has in a field, JSON parsed; nil: nothing.
func (r *Row) Value(field string) any {
	c := r.columns[field]
	if c == nil || len(c.valid) > r.i && !c.valid[r.i] {
		return nil
	}
	at := r.i
	if c.index != nil {
		at = c.index[r.i]
	}
	text, isJSON := c.at(at).([]byte)
	if !isJSON {
		return c.at(at)
	}
	if v, ok := r.parsed[field]; ok {
		return v
	}
	var v any
	if json.Unmarshal(text, &v) != nil {
		v = nil // what its owner wrote is no JSON
	}
	if r.parsed == nil {
		r.parsed = map[string]any{}
	}
	r.parsed[field] = v
	return v
}
