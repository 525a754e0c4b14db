package attached

import (
	"cmp"
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/plugins/store/milvus/internal/column"
	"github.com/racflow/racflow/sdk"
)

// leg is one leg of a search: the dense one unless it is lexical.
type leg struct {
	*Collection
	asked   sdk.Search
	lexical bool
}

// textRows is up to how many rows come with their texts; of more the SDK gets those
// that it wants by their ids.
const textRows = 1000

// replyBytes is about how large the reply to several queries may become: of larger rows,
// or more of them, fewer queries are sent together.
const replyBytes = 64 << 20

// run finds the best entries of all queries. Those with one filter are sent together.
func (l leg) run(ctx context.Context, queries []*query) error {
	groups := map[string][]*query{}
	for _, q := range queries {
		if !q.condition.None && (l.lexical || q.vector != nil) {
			groups[q.condition.Expr] = append(groups[q.condition.Expr], q)
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for _, group := range groups {
		for part := range slices.Chunk(group, 64) {
			g.Go(func() error { return l.find(ctx, part) })
		}
	}
	return g.Wait()
}

// find reads more rows as long as the filter leaves too few of them.
func (l leg) find(ctx context.Context, queries []*query) error {
	limit := l.asked.NumCandidates
	if !l.lexical && !l.scores.exact {
		limit *= 2
	}
	for limit = min(limit, maxRows); ; limit = min(4*limit, maxRows) {
		var unsure []*query
		for part := range slices.Chunk(queries, max(1, replyBytes/(limit*l.rowBytes))) {
			lists, err := l.lists(ctx, part, limit)
			if err != nil {
				return err
			}
			for i, q := range part {
				hits := l.accept(q, lists[i])
				if len(hits) < l.asked.NumCandidates && len(lists[i]) == limit {
					unsure = append(unsure, q)
				}
				hits = hits[:min(len(hits), l.asked.NumCandidates)]
				if l.lexical {
					q.lexical = hits
				} else {
					q.dense = hits
				}
			}
		}
		if queries = unsure; len(queries) == 0 {
			return nil
		}
		if limit == maxRows {
			l.log.Warn("a filter leaves too few of the rows that a server returns at most", "collection", l.Name, "rows", maxRows, "filter", queries[0].Filter.String())
			return nil
		}
	}
}

func (l leg) lists(ctx context.Context, queries []*query, limit int) ([][]scored, error) {
	// A filter that the server cannot check gives the same expression as none.
	filtered := slices.ContainsFunc(queries, func(q *query) bool { return q.Filter != nil })
	fields := l.Outputs(l.asked.Texts && limit <= textRows, filtered, !l.scores.exact)
	expr := queries[0].condition.Expr
	if l.lexical {
		texts := make([]string, len(queries))
		for i, q := range queries {
			texts[i] = q.Text
		}
		return l.search(ctx, l.lexicalRequest(texts, expr, fields, limit))
	}
	vectors := make([][]float32, len(queries))
	for i, q := range queries {
		vectors[i] = q.vector
	}
	return l.search(ctx, l.denseRequest(vectors, expr, fields, limit))
}

// accept scores the rows that the filter selects, and sorts them. Equal scores stand
// in the order of the ids.
func (l leg) accept(q *query, found []scored) []hit {
	seen := map[string]bool{}
	var hits []hit
	for _, r := range found {
		if r.id == "" || seen[r.id] || q.Filter != nil && !q.Filter.Match(r.id, l.LabelOf(r.Row), l.ReadMeta(r.Row)) {
			continue
		}
		seen[r.id] = true
		h := hit{scored: r, dense: sdk.Unscored, lexical: sdk.Unscored}
		if l.lexical {
			h.lexical = bm25(r.score)
		} else if l.scores.exact {
			h.dense = l.scores.cosine(r.score)
		}
		if !l.scores.exact && q.vector != nil {
			x, _ := r.Value(l.Vector.GetName()).([]float32)
			h.dense = column.Cosine(q.vector, x)
		}
		hits = append(hits, h)
	}
	rank := func(h hit) float32 {
		if l.lexical {
			return h.lexical
		}
		return h.dense
	}
	slices.SortFunc(hits, func(a, b hit) int { return cmp.Or(cmp.Compare(rank(b), rank(a)), cmp.Compare(a.id, b.id)) })
	return hits
}

// entries are the hits as the SDK takes them. Where their texts did not come with
// them, it gets those by their ids.
func (l leg) entries(hits []hit) []sdk.Hit {
	all := make([]sdk.Hit, len(hits))
	for i, h := range hits {
		all[i] = sdk.Hit{ID: h.id, Dense: h.dense, Lexical: h.lexical}
		if !l.asked.Texts || l.HasTexts(h.Row) {
			e := l.Entry(h.Row, l.asked.Texts)
			all[i].Entry = &e
		}
	}
	return all
}
