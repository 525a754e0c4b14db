package table

import (
	"fmt"
	"testing"

	"github.com/racflow/racflow/sdk"
)

// rowsWith are what a server returns: rows with these scores, and so many that no filter selects.
func rowsWith(others int, scores ...float32) (rows []Scored) {
	add := func(key string, score float32) {
		rows = append(rows, Scored{&ReplyRow{columns: map[string][]any{FieldKey: {key}, FieldID: {"entry " + key}}}, score})
	}
	for i, score := range scores {
		add(fmt.Sprint(i), score)
	}
	for range others {
		add("no entry", 0)
	}
	return rows
}

// What a server returned is enough where no other row can be better.
func TestSettle(t *testing.T) {
	many := make([]float32, 300)
	for i := range many {
		many[i] = .5
	}
	for name, test := range map[string]struct {
		wanted, limit int
		rows          []Scored
		hits          int
		sure          bool
	}{
		"there are no others":                     {3, 10, rowsWith(0, .9, .8), 2, true},
		"nothing at all":                          {3, 10, rowsWith(0), 0, true},
		"the last is better than all others":      {2, 3, rowsWith(0, .9, .8, .7), 2, true},
		"the last ties with others":               {2, 3, rowsWith(0, .9, .7, .7), 2, false},
		"others were in the way":                  {3, 4, rowsWith(2, .9, .8), 2, false},
		"in a long list the server may choose":    {200, 300, rowsWith(0, many...), 200, true},
		"at the end of a list that is not longer": {100, 300, rowsWith(0, many...), 100, false},
	} {
		l := Leg{Wanted: test.wanted, Ties: true, Score: func(x float32) float32 { return x }}
		l.Hit = func(_ *Query, r Scored) (Hit, bool) {
			f, err := Decode(r.ReplyRow)
			return Hit{Found: &f, Dense: r.Score, BM25: sdk.Unscored}, err == nil && f.Key != "no entry"
		}
		var q Query
		if sure := l.settle(&q, test.rows, test.limit); len(q.Dense) != test.hits || sure != test.sure {
			t.Errorf("%s: %d hits, sure %v; want %d, %v", name, len(q.Dense), sure, test.hits, test.sure)
		}
	}
}
