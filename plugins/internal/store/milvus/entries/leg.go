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

// leg is one leg of a search. It reads more rows until it has the best. In a collection of racflow's own, entries that
// tie with the last one of a list count by their ids, as in the embedded store.
type leg struct {
	*Collection
	scores scores
	kind   kind
	field  string
	wanted int // hits of each query
	first  int // rows that are read of each query at first
}

// kind says which leg of a search something is of.
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

// score makes that of a server the leg's.
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

// hit makes a hit of a row; false: it is no entry, or the filter does not select it.
func (l leg) hit(q *query, r table.Scored) (hit, bool) {
	h, ok := l.unscored(q, r.ReplyRow)
	if h.scores[l.kind] = l.score(r.Score); !l.scores.exact && q.vector != nil {
		h.scores[dense] = cosine(q.vector, l.vectorOf(r.ReplyRow))
	}
	return h, ok
}

// unscored makes a hit that has no scores yet.
func (l leg) unscored(q *query, r *table.ReplyRow) (hit, bool) {
	h := hit{Entry: l.entry(r, false), key: l.keyOf(r), scores: [2]float32{sdk.Unscored, sdk.Unscored}}
	return h, h.ID != "" && (q.filter == nil || q.filter.Match(h.ID, h.Label, l.readMeta(r)))
}

// canMatch reports whether a query has what the leg searches by.
func (l leg) canMatch(q *query) bool {
	if l.kind == lexical {
		return q.text != ""
	}
	return q.vector != nil
}

// rowsPerCall is about how many rows a call asks for: a reply has to fit a message, with a vector or
// metadata in each row, and the time that Milvus Lite 2 takes grows faster than their number.
const rowsPerCall = 4096

// search sends queries with one condition together.
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

// find reads more rows as long as they are not enough.
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
	// A filter that the server cannot check gives the same expression as none.
	filtered := slices.ContainsFunc(queries, func(q *query) bool { return q.filter != nil })
	r := table.SearchRequest{Field: l.field, Metric: l.scores.metric, Expr: expr, Fields: l.outputs(false, filtered, !l.scores.exact), Limit: limit, Params: map[string]any{}}
	if l.kind == lexical {
		r.Metric, r.Queries = table.MetricBM25, &commonpb.PlaceholderValue{Tag: "$0", Type: commonpb.PlaceholderType_VarChar}
		for _, q := range queries {
			// Milvus Lite 2 ends at a text that is not UTF-8.
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
	// tolerance is how far a server's sums may be from each other by rounding.
	tolerance = 1e-5
	// longList is how long a list is in which the server may choose among ties: of short texts hundreds may.
	longList = 100
)

// settle keeps the best of what the server returned, and reports whether no row that it did not return can belong
// to them.
func (l leg) settle(q *query, rows []table.Scored, limit int) bool {
	seen := map[string]bool{} // of several rows with one id the best counts
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
		return true // there are no others
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

// best sorts hits and returns the first ones. Equal scores stand in the order of the ids.
func (l leg) best(hits []hit) []hit {
	slices.SortFunc(hits, func(a, b hit) int {
		return cmp.Or(cmp.Compare(b.scores[l.kind], a.scores[l.kind]), cmp.Compare(a.ID, b.ID))
	})
	return hits[:min(l.wanted, len(hits))]
}

// exhausted is for a query of which as many rows were read as a server returns. In a collection of racflow's own the
// server then scores all entries, some at a time.
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

// fill has the server score hits that lack the leg's score. By words it finds nothing where an entry has none of
// them: then the score is 0. A row whose key no expression can name, or that an inexact index misses, keeps none.
// Asking for many rows by their keys costs a fraction of having their vectors sent.
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
	slices.Sort(keys) // neighbours are close to each other on the server too
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
