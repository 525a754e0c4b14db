package table

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"
)

// Every number of 16 bits that is one comes back as it was.
func TestFloat16(t *testing.T) {
	for h := range 1 << 16 {
		for name, c := range map[string]struct {
			from func(uint16) float32
			to   func(float32) uint16
		}{"float16": {fromFloat16, toFloat16}, "bfloat16": {fromBFloat16, toBFloat16}} {
			x := c.from(uint16(h))
			if back := c.to(x); back != uint16(h) && x == x {
				t.Fatalf("%s: %#04x is %v, and that is %#04x", name, h, x, back)
			}
		}
	}
	for x, want := range map[float32]float32{
		1: 1, 0.1: 0.099975586, 65504: 65504, 1e-7: 1.1920929e-07, 1e-9: 0, 1 + 1.0/2048: 1, 1 + 3.0/2048: 1 + 2.0/1024, 0.99999: 1, 6.1e-5: 6.097555e-05,
	} {
		if got := fromFloat16(toFloat16(x)); math.Abs(float64(got-want)) > 1e-9 {
			t.Errorf("%v becomes %v, want %v", x, got, want)
		}
	}
	if got := fromFloat16(toFloat16(1e6)); !math.IsInf(float64(got), 1) {
		t.Errorf("what is too large becomes %v", got)
	}
}

// Vectors of 16 bits are read, and written for a search.
func TestHalfVectors(t *testing.T) {
	x := [][]float32{{1, -0.5, 0.25}, {0, 2, 3}}
	for _, typ := range []schemapb.DataType{schemapb.DataType_FloatVector, schemapb.DataType_Float16Vector, schemapb.DataType_BFloat16Vector} {
		sent := Placeholders(typ, x)
		var all []byte
		for _, v := range sent.GetValues() {
			all = append(all, v...)
		}
		field := &schemapb.VectorField{Dim: 3}
		switch typ {
		case schemapb.DataType_Float16Vector:
			field.Data = &schemapb.VectorField_Float16Vector{Float16Vector: all}
		case schemapb.DataType_BFloat16Vector:
			field.Data = &schemapb.VectorField_Bfloat16Vector{Bfloat16Vector: all}
		default:
			var values []float32
			for i := 0; i < len(all); i += 4 {
				values = append(values, math.Float32frombits(binary.LittleEndian.Uint32(all[i:])))
			}
			field.Data = &schemapb.VectorField_FloatVector{FloatVector: &schemapb.FloatArray{Data: values}}
		}
		read := valuesOf(&schemapb.FieldData{Field: &schemapb.FieldData_Vectors{Vectors: field}})
		if len(read) != 2 {
			t.Fatalf("%v: %+v", typ, read)
		}
		for i, want := range x {
			for j, got := range read[i].([]float32) {
				if got != want[j] {
					t.Errorf("%v: vector %d has %v, want %v", typ, i, got, want[j])
				}
			}
		}
	}
	bits := &schemapb.VectorField{Dim: 8, Data: &schemapb.VectorField_BinaryVector{BinaryVector: []byte{1}}}
	if read := valuesOf(&schemapb.FieldData{Field: &schemapb.FieldData_Vectors{Vectors: bits}}); read != nil {
		t.Errorf("bits are read as %+v", read)
	}
}

// Where a server leaves NULLs out of a column, each value is still that of its row.
func TestNulls(t *testing.T) {
	valid := []bool{false, true, false, true}
	keys := &schemapb.FieldData{FieldName: "id", Field: &schemapb.FieldData_Scalars{Scalars: &schemapb.ScalarField{Data: &schemapb.ScalarField_LongData{LongData: &schemapb.LongArray{Data: []int64{1, 2, 3, 4}}}}}}
	for _, values := range [][]int32{{0, 1, 0, 3}, {1, 3}} {
		data := &schemapb.FieldData{FieldName: "year", ValidData: valid, Field: &schemapb.FieldData_Scalars{Scalars: &schemapb.ScalarField{Data: &schemapb.ScalarField_IntData{IntData: &schemapb.IntArray{Data: values}}}}}
		r, err := ReplyRows([]*schemapb.FieldData{data, keys}, nil, "id")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 4 {
			want := any(nil)
			if valid[i] {
				want = int64(i)
			}
			if got := r[i].Value("year"); got != want {
				t.Errorf("%v: row %d has %v, want %v", values, i, got, want)
			}
		}
	}
	if _, err := ReplyRows([]*schemapb.FieldData{keys, {FieldName: "year", Field: &schemapb.FieldData_Scalars{Scalars: &schemapb.ScalarField{Data: &schemapb.ScalarField_IntData{IntData: &schemapb.IntArray{Data: []int32{1}}}}}}}, nil, "id"); err == nil {
		t.Error("one value for four rows is taken")
	}
}
