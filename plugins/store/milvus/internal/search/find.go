package search

import (
	"context"
	"math"
	"slices"

	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"github.com/racflow/racflow/plugins/store/milvus/internal/expression"
	"github.com/racflow/racflow/plugins/store/milvus/internal/row"
	"github.com/racflow/racflow/plugins/store/milvus/internal/table"
)

// find reads as many rows as it takes to be sure of the best. Rows that are not
// of the commit, such as those of a writer at work, can take the place of others;
// then the server has to leave them out, and until the next commit from the start.
func (l leg) find(ctx context.Context, queries []*query) error {
	limit := l.firstLimit()
	needs := &l.searcher.needsServerFilter
	for len(queries) > 0 {
		answers, err := l.ask(ctx, queries, limit, needs.Load() == l.Record.Commit)
		if err != nil {
			return err
		}
		var unsure []*query
		invisible := 0
		for i, q := range queries {
			hits, sure := l.settle(q, answers[i], limit)
			l.found(q, hits)
			if !sure {
				unsure = append(unsure, q)
				invisible += answers[i].invisible
			}
		}
		queries = unsure
		switch {
		case invisible > 0:
			needs.Store(l.Record.Commit)
			l.searcher.Log.Debug("rows that are not of the commit disturb the search: the server filters them from now on", "collection", l.Collection, "commit", l.Record.Commit)
		case limit == table.MaxRows:
			for _, q := range queries {
				if err := l.readAll(ctx, q); err != nil {
					return err
				}
			}
			return nil
		default:
			limit = min(4*limit, table.MaxRows)
		}
	}
	return nil
}

// firstLimit is how many rows are read at first: some more than wanted, because
// dead rows and ties fall away, and more again where the server's order is less exact.
func (l leg) firstLimit() int {
	n := l.wanted + 16 + int(8*float32(l.wanted)*(l.errorBound()-1))
	return min(n+min(len(l.Dead), l.wanted), table.MaxRows)
}

// answer is what a server returned for one query.
type answer struct {
	rows      []row.Found // of the commit; dead ones too
	invisible int         // rows that came and are not of the commit
	lowest    float32     // score of all that came; infinite where nothing did
}

// ask makes one search for several queries with the same condition. A server that
// has to leave out what is not of the commit takes longer for it, and most often
// there is little of that: it is asked to only with serverFilter.
func (l leg) ask(ctx context.Context, queries []*query, limit int, serverFilter bool) ([]answer, error) {
	expr := queries[0].condition.Expr
	if serverFilter {
		expr = expression.And(l.Expression(), expr)
	}
	vectors := make([]entity.Vector, len(queries))
	for i, q := range queries {
		vectors[i] = l.vector(q)
	}
	fields := []string{row.FieldDetails}
	switch {
	case l.texts:
		fields = append(fields, row.FieldsTexts...)
	case queries[0].filter != nil:
		fields = append(fields, row.FieldMeta)
	}
	lists, err := l.Search(ctx, expr, fields, vectors, l.field(), limit)
	if err != nil {
		return nil, err
	}
	answers := make([]answer, len(lists))
	for i, rows := range lists {
		a := answer{lowest: float32(math.Inf(1))}
		for i := range rows {
			a.lowest = min(a.lowest, rows[i].Score)
		}
		a.rows = slices.DeleteFunc(rows, func(r row.Found) bool { return !l.Contains(r.Sequence) })
		a.invisible = len(rows) - len(a.rows)
		if err := l.FillDetails(ctx, table.AsConfigured, a.rows); err != nil {
			return nil, err
		}
		answers[i] = a
	}
	return answers, nil
}

// tolerance is how far the sums of a server may be from ours by rounding.
const tolerance = 1e-5

// longList is how long a list is in which the server may choose among the entries
// that tie with the last one: of short texts hundreds may.
const longList = 100

// settle scores what the server returned, returns the best and reports whether
// no row that it did not return can belong to them.
func (l leg) settle(q *query, a answer, limit int) ([]hit, bool) {
	hits := make([]hit, 0, len(a.rows))
	for i := range a.rows {
		if h, ok := l.accept(q, &a.rows[i]); ok {
			hits = append(hits, h)
		}
	}
	hits = l.best(hits)
	if len(a.rows)+a.invisible < limit {
		return hits, true // there are no others
	}
	if len(hits) < l.wanted {
		return hits, false
	}
	last, bound := l.rank(hits[l.wanted-1]), a.lowest*l.errorBound()
	slack := tolerance * max(1, bound)
	if last > bound+slack {
		return hits, true
	}
	return hits, l.wanted > longList && last >= bound-slack && a.lowest >= bound-slack
}
