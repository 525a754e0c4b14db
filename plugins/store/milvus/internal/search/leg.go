package search

import (
	"cmp"
	"context"
	"slices"

	"github.com/milvus-io/milvus-sdk-go/v2/entity"
	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/plugins/store/milvus/internal/bm25"
	"github.com/racflow/racflow/plugins/store/milvus/internal/row"
	"github.com/racflow/racflow/plugins/store/milvus/internal/snapshot"
	"github.com/racflow/racflow/sdk"
)

// leg is one leg of a search: the dense one unless it is lexical.
type leg struct {
	*snapshot.Snapshot
	searcher *Searcher
	wanted   int // hits of each query
	texts    bool
	formula  bm25.Formula
	bm25     bool // hits get a BM25 score
	lexical  bool
}

// rowsPerCall is about how many rows a call asks for: the time that Milvus Lite 2 takes
// grows faster than their number.
const rowsPerCall = 4096

func (l leg) field() string {
	if l.lexical {
		return row.FieldWords
	}
	return row.FieldVector
}

// vector is what a server is asked with; nil: nothing can match.
func (l leg) vector(q *query) entity.Vector {
	switch {
	case l.lexical && len(q.terms) > 0:
		return bm25.Query(q.terms)
	case !l.lexical && q.vector != nil:
		return entity.FloatVector(q.vector)
	}
	return nil
}

// errorBound is the factor by which a score of today's can be higher than the
// server's. It follows from the formula: with the average length a in place of a0,
// the part of a row's score that a word gives grows by a factor of at most a/a0,
// and not at all where a is smaller.
func (l leg) errorBound() float32 {
	if !l.lexical || l.Record.Lowest <= 0 {
		return 1
	}
	return float32(max(1, l.Record.Average()/l.Record.Lowest))
}

// accept scores a row unless it is dead or the filter does not select it.
func (l leg) accept(q *query, r *row.Found) (hit, bool) {
	if l.IsDead(r.Sequence) || !q.filter.Match(r.Entry.ID, r.Entry.Label, r.Entry.Meta) {
		return hit{}, false
	}
	h := hit{Found: r, dense: r.Score, bm25: sdk.Unscored}
	if l.bm25 {
		h.bm25 = l.formula.Score(q.terms, r.Counts)
	}
	if l.lexical {
		h.dense = sdk.Unscored
	}
	return h, !l.lexical || h.bm25 > 0
}

func (l leg) rank(h hit) float32 {
	if l.lexical {
		return h.bm25
	}
	return h.dense
}

// best sorts hits and returns the first ones. Equal scores stand in the order of
// the ids.
func (l leg) best(hits []hit) []hit {
	slices.SortFunc(hits, func(a, b hit) int {
		return cmp.Or(cmp.Compare(l.rank(b), l.rank(a)), cmp.Compare(a.Entry.ID, b.Entry.ID))
	})
	return hits[:min(l.wanted, len(hits))]
}

func (l leg) found(q *query, hits []hit) {
	if l.lexical {
		q.lexical = hits
	} else {
		q.dense = hits
	}
}

// search finds the best entries of all queries. Those with one filter are sent
// together.
func (l leg) search(ctx context.Context, queries []*query) error {
	groups := map[string][]*query{}
	for _, q := range queries {
		if !q.condition.None && l.vector(q) != nil {
			groups[q.condition.Expr] = append(groups[q.condition.Expr], q)
		}
	}
	var parts [][]*query
	for _, group := range groups {
		parts = slices.AppendSeq(parts, slices.Chunk(group, max(1, rowsPerCall/l.firstLimit())))
	}
	if len(parts) == 1 { // most often, and a new goroutine's stack has to grow first
		return l.find(ctx, parts[0])
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for _, part := range parts {
		g.Go(func() error { return l.find(ctx, part) })
	}
	return g.Wait()
}
