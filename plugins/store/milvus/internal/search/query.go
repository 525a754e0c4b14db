package search

import (
	"errors"
	"fmt"
	"slices"

	"github.com/racflow/racflow/plugins/store/milvus/internal/bm25"
	"github.com/racflow/racflow/plugins/store/milvus/internal/expression"
	"github.com/racflow/racflow/plugins/store/milvus/internal/row"
	"github.com/racflow/racflow/plugins/store/milvus/internal/snapshot"
	"github.com/racflow/racflow/sdk"
)

// query is one query, and what the legs found for it.
type query struct {
	vector    []float32 // of norm 1; nil: it has none, or one without direction
	terms     []bm25.Term
	filter    *sdk.Filter
	condition expression.Condition

	dense, lexical []hit
}

// hit is a row that a leg found, with the scores of both.
type hit struct {
	*row.Found
	dense, bm25 float32
}

func newQuery(s *snapshot.Snapshot, given sdk.Query, needsVector bool) (*query, error) {
	q := &query{filter: given.Filter}
	switch x := given.Vector; {
	case len(x) == 0 && needsVector:
		return nil, errors.New("the query has no vector")
	case len(x) > 0 && len(x) != s.Schema.Dimension:
		return nil, fmt.Errorf("the query's vector has %d dimensions and the collection's have %d", len(x), s.Schema.Dimension)
	case !row.Finite(x):
		return nil, errors.New("the query's vector has NaN or an infinity in it")
	case slices.ContainsFunc(x, func(v float32) bool { return v != 0 }):
		q.vector = make([]float32, row.Width(len(x)))
		copy(q.vector, row.Unit(x))
	}
	if given.Filter != nil {
		if err := given.Filter.Check(); err != nil {
			return nil, err
		}
	}
	q.condition = expression.Of(given.Filter)
	if s.Analyzer != nil {
		q.terms = bm25.Terms(*s.Analyzer, given.Text, s.Record.Entries, s.Frequencies)
	}
	return q, nil
}
