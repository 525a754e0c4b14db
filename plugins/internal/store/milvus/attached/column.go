package attached

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"
	"github.com/x448/float16"
)

// This file decodes the replies of a server, which have a column for each
// field, as rows; and vectors, of 32 or 16 bits, both ways.

// column is one field of rows.
type column struct {
	at    func(i int) any // a string, an int64, a float64, a bool, []float32, or []byte of JSON
	n     int
	valid []bool // nil: no value is NULL
	index []int  // where the value of a row is, if the server left out NULLs
}

// ColumnRow is one row. It keeps what it has parsed.
type ColumnRow struct {
	columns map[string]*column // of all rows of the reply, by the names of the fields
	i       int
	parsed  map[string]any // JSON fields
}

// ReadColumn decodes the fields of a reply of n rows; those of a type that has no place in an
// entry are left out.
func ReadColumn(fields []*schemapb.FieldData, n int) ([]*ColumnRow, error) {
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
	all := make([]*ColumnRow, n)
	for i := range all {
		all[i] = &ColumnRow{columns: columns, i: i}
	}
	return all, nil
}

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
func (r *ColumnRow) Value(field string) any {
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

// vectorColumn reads vectors of floats; nil: it has others.
func vectorColumn(c *column, v *schemapb.VectorField) *column {
	dim := int(v.GetDim())
	if dim == 0 {
		return nil
	}
	halves := func(data []byte, decode func(uint16) float32) *column {
		c.n = len(data) / (2 * dim)
		c.at = func(i int) any {
			x := make([]float32, dim)
			for j := range x {
				x[j] = decode(binary.LittleEndian.Uint16(data[2*(i*dim+j):]))
			}
			return x
		}
		return c
	}
	switch data := v.GetData().(type) {
	case *schemapb.VectorField_FloatVector:
		values := data.FloatVector.GetData()
		c.n, c.at = len(values)/dim, func(i int) any { return values[i*dim : (i+1)*dim : (i+1)*dim] }
		return c
	case *schemapb.VectorField_Float16Vector:
		return halves(data.Float16Vector, fromFloat16)
	case *schemapb.VectorField_Bfloat16Vector:
		return halves(data.Bfloat16Vector, fromBFloat16)
	}
	return nil
}

func fromFloat16(h uint16) float32  { return float16.Frombits(h).Float32() }
func toFloat16(x float32) uint16    { return float16.Fromfloat32(x).Bits() }
func fromBFloat16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

func toBFloat16(x float32) uint16 {
	b := math.Float32bits(x)
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// Placeholders writes vectors as a search of a field of this type takes them.
func Placeholders(typ schemapb.DataType, vectors [][]float32) *commonpb.PlaceholderValue {
	v := &commonpb.PlaceholderValue{Tag: "$0", Type: commonpb.PlaceholderType(typ)}
	for _, x := range vectors {
		var b []byte
		for _, part := range x {
			switch typ {
			case schemapb.DataType_Float16Vector:
				b = binary.LittleEndian.AppendUint16(b, toFloat16(part))
			case schemapb.DataType_BFloat16Vector:
				b = binary.LittleEndian.AppendUint16(b, toBFloat16(part))
			default:
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(part))
			}
		}
		v.Values = append(v.Values, b)
	}
	return v
}

// Cosine of two vectors; 0 where one has no direction.
func Cosine(a, b []float32) float32 {
	var product, squareA, squareB float64
	for i := range min(len(a), len(b)) {
		x, y := float64(a[i]), float64(b[i])
		product, squareA, squareB = product+x*y, squareA+x*x, squareB+y*y
	}
	if squareA == 0 || squareB == 0 {
		return 0
	}
	return ClipText(product / math.Sqrt(squareA*squareB))
}

// Norm is the length of a vector.
func Norm(x []float32) float64 {
	var square float64
	for _, v := range x {
		square += float64(v) * float64(v)
	}
	return math.Sqrt(square)
}

// ClipText makes a score a cosine; NaN, which some servers give for a vector without
// direction, is 0.
func ClipText(x float64) float32 {
	if math.IsNaN(x) {
		return 0
	}
	return float32(max(-1, min(1, x)))
}
