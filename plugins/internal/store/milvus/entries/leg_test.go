package entries

import (
	"fmt"
	"testing"

	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"
	"github.com/racflow/racflow/plugins/internal/store/milvus/table"

	"github.com/racflow/racflow/sdk"
)

// rowsWith returns rows with these scores, and a number of rows that no filter selects, as from a server.
func rowsWith(t *testing.T, others int, scores ...float32) (rows []table.Scored) {
	add := func(id string, score float32) {
		column := &schemapb.FieldData{FieldName: table.FieldID, Field: &schemapb.FieldData_Scalars{Scalars: &schemapb.ScalarField{Data: &schemapb.ScalarField_StringData{StringData: &schemapb.StringArray{Data: []string{id}}}}}}
		r, err := table.ReplyRows([]*schemapb.FieldData{column}, nil, table.FieldID)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, table.Scored{ReplyRow: r[0], Score: score})
	}
	for i, score := range scores {
		add(fmt.Sprint(i), score)
	}
	for range others {
		add("", 0)
	}
	return rows
}

// The returned rows are enough if no other row can be better.
func TestSettle(t *testing.T) {
	many := make([]float32, 300)
	for i := range many {
		many[i] = .5
	}
	for name, test := range map[string]struct {
		wanted, limit int
		rows          []table.Scored
		hits          int
		sure          bool
	}{
		"there are no others":                     {3, 10, rowsWith(t, 0, .9, .8), 2, true},
		"nothing at all":                          {3, 10, rowsWith(t, 0), 0, true},
		"the last is better than all others":      {2, 3, rowsWith(t, 0, .9, .8, .7), 2, true},
		"the last ties with others":               {2, 3, rowsWith(t, 0, .9, .7, .7), 2, false},
		"others were in the way":                  {3, 4, rowsWith(t, 2, .9, .8), 2, false},
		"in a long list the server may choose":    {200, 300, rowsWith(t, 0, many...), 200, true},
		"at the end of a list that is not longer": {100, 300, rowsWith(t, 0, many...), 100, false},
	} {
		l := own(t).leg(dense, sdk.Search{NumCandidates: test.wanted})
		var q query
		if sure := l.settle(&q, test.rows, test.limit); len(q.hits[dense]) != test.hits || sure != test.sure {
			t.Errorf("%s: %d hits, sure %v; want %d, %v", name, len(q.hits[dense]), sure, test.hits, test.sure)
		}
	}
}
