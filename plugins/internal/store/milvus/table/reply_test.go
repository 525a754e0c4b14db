package table

import (
	"testing"

	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"
)

// If a server leaves NULLs out of a column, each value still belongs to its row.
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
