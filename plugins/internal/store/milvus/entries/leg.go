package entries

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
)

// leg is one leg of a search. It reads more rows until it has the best ones. In racflow's own collections, entries
// with the same score are ordered by id, as in the embedded store.
type leg struct {
	*Collection
	scores scores
	kind   kind
	field  string
	wanted int // hits of each query
	first  int // rows per query in the first read
}

// kind is the kind of a leg.
type kind int

const (
	dense   kind = iota // by vectors
	lexical             // by words
)

func (c *Collection) leg(k kind, search sdk.Search) leg {
	l := leg{Collection: c, scores: c.scores(search.Norm), kind: k, field: c.Vector.GetName(), wanted: search.NumCandidates, first: search.NumCandidates}
	switch {
	case k == lexical:
		l.field = c.Words
	case !l.scores.exact:
		l.first *= 2
	}
	if c.own != nil {
		l.first += 16
	}
	return l
}

// score converts a server's score to the leg's score.
func (l leg) score(server float32) float32 {
	switch words := max(server, -server); { // Milvus Lite 3 gives BM25 as a distance, below 0
	case l.kind == dense:
		return l.scores.toCosine(server)
	case l.own != nil:
		return words / float32(l.own.Options.K1+1) // servers multiply by that
	default:
		return words
	}
}

// hit converts a row into a hit; false: the row is no entry, or the filter excludes it.
func (l leg) hit(q *query, r table.Scored) (hit, bool) {
	h, ok := l.unscored(q, r.ReplyRow)
	if h.scores[l.kind] = l.score(r.Score); !l.scores.exact && q.vector != nil {
		h.scores[dense] = cosine(q.vector, l.vectorOf(r.ReplyRow))
	}
	return h, ok
}

// unscored converts a row into a hit without scores.
func (l leg) unscored(q *query, r *table.ReplyRow) (hit, bool) {
	h := hit{Entry: l.entry(r, false), key: l.keyOf(r), scores: [2]float32{sdk.Unscored, sdk.Unscored}}
	return h, h.ID != "" && (q.filter == nil || q.filter.Match(h.ID, h.Label, l.readMeta(r)))
}

// canMatch reports whether a query has the words or the vector that the leg needs.
func (l leg) canMatch(q *query) bool {
	if l.kind == lexical {
		return q.text != ""
	}
	return q.vector != nil
}

// rowsPerCall is about how many rows a call asks for. A reply must fit into a message, with a vector or metadata in
// each row. The time of Milvus Lite 2 also grows faster than the number of rows.
const rowsPerCall = 4096

// search sends queries with the same condition together.
func (l leg) search(ctx context.Context, queries []*query) error {
	groups := map[string][]*query{}
	for _, q := range queries {
		if l.canMatch(q) && !q.condition.None {
			groups[q.condition.Expr] = append(groups[q.condition.Expr], q)
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for _, group := range groups {
		for part := range slices.Chunk(group, max(1, rowsPerCall/max(1, l.first))) {
			g.Go(func() error { return l.find(ctx, part) })
		}
	}
	return g.Wait()
}

// find reads more rows until they are enough.
func (l leg) find(ctx context.Context, queries []*query) error {
	for limit := min(l.first, table.MaxRows); len(queries) > 0; limit = min(4*limit, table.MaxRows) {
		var unsure []*query
		for part := range slices.Chunk(queries, max(1, rowsPerCall/limit)) {
			lists, err := l.ask(ctx, part, part[0].condition.Expr, limit)
			if err != nil {
				return err
			}
			for i, q := range part {
				if !l.settle(q, lists[i], limit) {
					unsure = append(unsure, q)
				}
			}
		}
		if queries = unsure; limit == table.MaxRows {
			return eachQuery(ctx, queries, l.exhausted)
		}
	}
	return nil
}

// ask has the server search.
func (l leg) ask(ctx context.Context, queries []*query, expr string, limit int) ([][]table.Scored, error) {
	// A filter that the server cannot check has the same expression as no filter.
	filtered := slices.ContainsFunc(queries, func(q *query) bool { return q.filter != nil })
	r := table.SearchRequest{Field: l.field, Metric: l.scores.metric, Expr: expr, Fields: l.outputs(false, filtered, !l.scores.exact), Limit: limit, Params: map[string]any{}}
	if l.kind == lexical {
		r.Metric, r.Queries = table.MetricBM25, &commonpb.PlaceholderValue{Tag: "$0", Type: commonpb.PlaceholderType_VarChar}
		for _, q := range queries {
			// Milvus Lite 2 crashes on texts that are not UTF-8.
			r.Queries.Values = append(r.Queries.Values, []byte(strings.ToValidUTF8(q.text, "\uFFFD")))
		}
	} else {
		var vectors [][]float32
		for _, q := range queries {
			vectors = append(vectors, q.vector)
		}
		r.Params = table.SearchParams(l.Indexes[l.field]["index_type"], l.params, limit)
		r.Queries = table.Placeholders(vectors)
	}
	return l.rows().Search(ctx, r)
}

const (
	// tolerance is how far a server's sums may differ by rounding.
	tolerance = 1e-5
	// longList is the length from which a server's choice among ties is accepted: hundreds of short texts may tie.
	longList = 100
)

// settle keeps the best of the returned rows. It reports whether no other row can belong to them.
func (l leg) settle(q *query, rows []table.Scored, limit int) bool {
	seen := map[string]bool{} // of several rows with the same id, the best counts
	hits := make([]hit, 0, len(rows))
	for _, r := range rows {
		if h, ok := l.hit(q, r); ok && !seen[h.ID] {
			seen[h.ID] = true
			hits = append(hits, h)
		}
	}
	hits = l.best(hits)
	q.hits[l.kind] = hits
	switch {
	case len(rows) < limit:
		return true // the server has no more rows
	case len(hits) < l.wanted:
		return false
	case l.own == nil || l.wanted > longList:
		return true
	}
	lowest := float32(math.Inf(1))
	for _, r := range rows {
		lowest = min(lowest, l.score(r.Score))
	}
	return hits[l.wanted-1].scores[l.kind] > lowest+tolerance*max(1, lowest)
}

// best sorts hits and returns the first ones. Hits with equal scores are ordered by id.
func (l leg) best(hits []hit) []hit {
	slices.SortFunc(hits, func(a, b hit) int {
		return cmp.Or(cmp.Compare(b.scores[l.kind], a.scores[l.kind]), cmp.Compare(a.ID, b.ID))
	})
	return hits[:min(l.wanted, len(hits))]
}

// exhausted handles a query for which the server has returned as many rows as it can. In racflow's own collections
// the server then scores all entries, in batches.
func (l leg) exhausted(ctx context.Context, q *query) error {
	if l.own == nil {
		l.log.Warn("a filter leaves too few of the rows that a server returns at most", "collection", l.Name, "rows", table.MaxRows, "filter", q.filter.String())
		return nil
	}
	var best, some []hit
	score := func() error {
		err := l.fill(ctx, q, some)
		for _, h := range some {
			if h.scores[lexical] > 0 || l.kind == dense {
				best = append(best, h)
			}
		}
		best, some = l.best(best), nil
		return err
	}
	err := l.rows().Walk(ctx, nil, q.condition.Expr, l.outputs(false, true, false), false, func(r *table.ReplyRow) (bool, error) {
		if h, ok := l.unscored(q, r); ok {
			some = append(some, h)
		}
		if len(some) < table.LookUp {
			return true, nil
		}
		return true, score()
	})
	if err == nil {
		err = score()
	}
	q.hits[l.kind] = best
	return err
}

// fill lets the server compute missing scores of the leg. If an entry has none of the words, the server finds nothing
// and the score is 0. A row keeps no score if no expression can name its key, or if an inexact index misses it.
// Asking for many rows by their keys is far cheaper than transferring their vectors.
func (l leg) fill(ctx context.Context, q *query, hits []hit) error {
	rows := l.rows()
	lacking := map[string]*float32{}
	var keys []string
	for i := range hits {
		h := &hits[i]
		_, named := table.OneOf(rows.Key, rows.WholeKeys, []string{h.key})
		if score := &h.scores[l.kind]; named > 0 && *score != *score {
			keys, lacking[h.key] = append(keys, h.key), score
			if l.kind == lexical {
				*score = 0
			}
		}
	}
	if len(keys) == 0 || !l.canMatch(q) {
		return nil
	}
	slices.Sort(keys) // adjacent keys are also close to each other on the server
	expr, n := table.OneOf(rows.Key, rows.WholeKeys, keys)
	lists, err := l.ask(ctx, []*query{q}, expr, n)
	if err != nil {
		return err
	}
	for _, r := range lists[0] {
		if h, ok := l.hit(q, r); ok && lacking[h.key] != nil {
			*lacking[h.key] = h.scores[l.kind]
		}
	}
	return nil
}
