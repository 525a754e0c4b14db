package milvus

import (
	"fmt"
	"testing"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// rowsWith are what a server returns: rows with these scores, and so many system rows.
func rowsWith(system int, scores ...float32) (rows []table.Found) {
	for i, score := range scores {
		rows = append(rows, table.Found{Key: fmt.Sprint(i), Score: score, Entry: sdk.Entry{ID: fmt.Sprint("entry ", i)}})
	}
	for i := range system {
		rows = append(rows, table.Found{Key: table.SystemPrefix + fmt.Sprint(i), Score: 1})
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
		rows          []table.Found
		hits          int
		sure          bool
	}{
		"there are no others":                     {3, 10, rowsWith(0, .9, .8), 2, true},
		"nothing at all":                          {3, 10, rowsWith(0), 0, true},
		"the last is better than all others":      {2, 3, rowsWith(0, .9, .8, .7), 2, true},
		"the last ties with others":               {2, 3, rowsWith(0, .9, .7, .7), 2, false},
		"system rows were in the way":             {3, 4, rowsWith(2, .9, .8), 2, false},
		"in a long list the server may choose":    {200, 300, rowsWith(0, many...), 200, true},
		"at the end of a list that is not longer": {100, 300, rowsWith(0, many...), 100, false},
	} {
		l := leg{known: empty(&table.Table{}, true), wanted: test.wanted}
		hits, sure := l.settle(&table.Query{}, test.rows, test.limit)
		if len(hits) != test.hits || sure != test.sure {
			t.Errorf("%s: %d hits, sure %v; want %d, %v", name, len(hits), sure, test.hits, test.sure)
		}
	}
}

// No score with today's average is higher than the bound on the server's score,
// whatever average the row was weighed with.
func TestErrorBound(t *testing.T) {
	standard, err := support.NamedAnalyzer("standard")
	if err != nil {
		t.Fatal(err)
	}
	counts := table.CountWords(standard, "", "green tea and more tea and tea with milk")
	frequencies := map[uint32]uint32{}
	for i, c := range counts.Words {
		frequencies[c.Word] = uint32(1 + 9*i)
	}
	terms := table.Terms(standard, "tea milk", 100, frequencies)
	if len(terms) != 2 {
		t.Fatalf("%d terms, want 2", len(terms))
	}
	for _, today := range []float64{2, 9, 40} {
		for _, lowest := range []float64{1, 8.5, 39, 60} {
			l := leg{known: empty(&table.Table{}, true), lexical: true, wanted: 10}
			l.record = record{Entries: 100, Words: int64(100 * today), Lowest: lowest}
			bound := l.errorBound()
			for _, weighed := range []float64{lowest, lowest * 1.2} {
				ours, theirs := table.NewFormula(1.2, .75, today).Score(terms, counts), table.NewFormula(1.2, .75, weighed).Score(terms, counts)
				if ours > theirs*bound*(1+tolerance) {
					t.Errorf("average %v, weighed with %v: score %v of today, %v of the server, bound %v", today, weighed, ours, theirs, bound)
				}
			}
			exact := leg{known: l.known, wanted: 10}
			if exact.errorBound() != 1 || l.Start() < exact.Start() {
				t.Errorf("the dense leg has bound %v and reads %d rows, the lexical one %d", exact.errorBound(), exact.Start(), l.Start())
			}
		}
	}
}
