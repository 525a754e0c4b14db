package attached

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
)

// scores says how the scores of a server become cosines.
type scores struct {
	metric string
	exact  bool    // they do; else cosines are computed from the vectors
	norm   float64 // that the vectors have on average; 0: not known
}

// scores are those of searches in vectors of this mean norm; 0: of norm 1, or not known.
func (c *Collection) scores(norm float64) scores {
	metric := c.Metric(c.Schema)
	return scores{metric: metric, exact: metric == MetricCosine || c.arguments.Normalized && norm == 0, norm: norm}
}

// note says so for people.
func (s scores) note() string {
	if s.exact {
		return "The server's scores (" + s.metric + ") are read as cosines."
	}
	return "The server's scores (" + s.metric + ") are no cosines where vectors have not norm 1: it chooses twice the candidates by them, and racflow orders these by the cosine. If all have norm 1, normalized = true saves that."
}

// query is the vector that the server is asked for. By L2 a vector with norm 1 is near to short
// vectors wherever they point, so it gets the norm that vectors of the collection have.
func (s scores) query(x []float32) []float32 {
	x = table.UnitVector(x)
	if s.exact || s.norm == 0 {
		return x
	}
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = float32(s.norm) * v
	}
	return out
}

// cosine makes a score of an entry whose vector has norm 1 the cosine.
func (s scores) cosine(score float32) float32 {
	if s.metric == MetricL2 { // the square of the distance, which is 2 - 2 cos
		return ClipText(1 - float64(score)/2)
	}
	return ClipText(float64(score))
}

// leg is one leg of a search: the dense one unless it is lexical.
type leg struct {
	*Collection
	scores  scores
	wanted  int // hits of each query
	lexical bool
}

// Start implements table.Leg.
func (l leg) Start() int {
	if !l.lexical && !l.scores.exact {
		return min(2*l.wanted, table.MaxRows)
	}
	return min(l.wanted, table.MaxRows)
}

// Find implements table.Leg.
func (l leg) Find(ctx context.Context, queries []*table.Query, limit int) ([][]table.Hit, []bool, error) {
	// A filter that the server cannot check gives the same expression as none.
	filtered := slices.ContainsFunc(queries, func(q *table.Query) bool { return q.Filter != nil })
	lists, err := l.rows().Search(ctx, l.request(queries, queries[0].Condition.Expr, l.Outputs(false, filtered, !l.scores.exact), limit))
	hits, enough := make([][]table.Hit, len(lists)), make([]bool, len(lists))
	for i, list := range lists {
		hits[i] = l.accept(queries[i], list)
		enough[i] = len(hits[i]) == l.wanted || len(list) < limit
	}
	return hits, enough, err
}

// Exhausted implements table.Leg.
func (l leg) Exhausted(_ context.Context, q *table.Query) error {
	l.log.Warn("a filter leaves too few of the rows that a server returns at most", "collection", l.Name, "rows", table.MaxRows, "filter", q.Filter.String())
	return nil
}

// accept scores the rows that the filter selects and returns the best.
func (l leg) accept(q *table.Query, found []table.Scored) []table.Hit {
	seen := map[string]bool{}
	var hits []table.Hit
	for _, r := range found {
		row := &table.Found{Key: l.KeyOf(r.ReplyRow), Score: r.Score, Entry: l.Entry(r.ReplyRow, false)}
		id := row.Entry.ID
		if id == "" || seen[id] || q.Filter != nil && !q.Filter.Match(id, row.Entry.Label, l.ReadMeta(r.ReplyRow)) {
			continue
		}
		seen[id] = true
		h := table.Hit{Found: row, Dense: sdk.Unscored, BM25: sdk.Unscored}
		if l.lexical {
			h.BM25 = bm25(r.Score)
		} else if l.scores.exact {
			h.Dense = l.scores.cosine(r.Score)
		}
		if !l.scores.exact && q.Vector != nil {
			h.Dense = Cosine(q.Vector, l.vectorOf(r.ReplyRow))
		}
		hits = append(hits, h)
	}
	return table.Best(hits, l.lexical, l.wanted)
}

// fill gives each hit the score that the other leg would give it: the cosines where they are the server's
// scores, else they came with the hits. By words a server finds nothing where an entry has none of them. A
// row whose key no expression can name keeps no score.
func (l leg) fill(ctx context.Context, q *table.Query) error {
	dense, lexical := q.Share()
	if q.Vector != nil && l.scores.exact {
		err := l.ask(ctx, q, lexical, func(h *table.Hit, score float32, found bool) {
			if found {
				h.Dense = l.scores.cosine(score)
			}
		})
		if err != nil {
			return err
		}
	}
	l.lexical = true
	return l.ask(ctx, q, dense, func(h *table.Hit, score float32, _ bool) { h.BM25 = bm25(score) })
}

// ask has a leg search among hits of the other one, and calls set with the server's score of each.
func (l leg) ask(ctx context.Context, q *table.Query, hits []*table.Hit, set func(h *table.Hit, score float32, found bool)) error {
	key := Place{Field: l.Key}
	hits = slices.DeleteFunc(hits, func(h *table.Hit) bool { _, n := OneOf(key, []string{h.Key}); return n == 0 })
	if len(hits) == 0 {
		return nil
	}
	keys := make([]string, len(hits))
	for i, h := range hits {
		keys[i] = h.Key
	}
	expr, n := OneOf(key, keys)
	lists, err := l.rows().Search(ctx, l.request([]*table.Query{q}, expr, l.Outputs(false, false, false), n))
	if err != nil {
		return err
	}
	scores := map[string]float32{}
	for _, r := range lists[0] {
		scores[l.KeyOf(r.ReplyRow)] = r.Score
	}
	for _, h := range hits {
		score, found := scores[h.Key]
		set(h, score, found)
	}
	return nil
}

// Search finds the best entries of each leg.
func (c *Collection) Search(ctx context.Context, search sdk.Search, given []sdk.Query) ([]sdk.Hits, error) {
	dense, _, err := table.Modes(search.Mode)
	switch {
	case err != nil:
		return nil, err
	case !dense && c.Words == "":
		return nil, sdk.Invalid(fmt.Errorf("no BM25 function fills a field of collection %q, so it cannot be searched by words: use mode %q", c.Name, sdk.ModeDense))
	case c.Words == "":
		search.Mode = sdk.ModeDense
	}
	l := leg{Collection: c, scores: c.scores(search.Norm), wanted: search.NumCandidates}
	queries, at, invalid := table.ParseQueries(given, c.dimension, dense, l.newQuery)
	if search.NumCandidates > 0 {
		err := table.SearchLegs(ctx, queries, search.Mode, func(lexical bool) table.Leg {
			l := l
			l.lexical = lexical
			return l
		})
		if err == nil && search.Mode != sdk.ModeDense {
			err = table.EachQuery(ctx, queries, l.fill)
		}
		if err != nil {
			return nil, err
		}
	}
	hits := make([]sdk.Hits, len(given))
	for i, q := range queries {
		hits[at[i]] = q.Hits(search.Mode, !search.Texts)
	}
	if len(invalid) > 0 {
		return hits, invalid
	}
	return hits, nil
}

func (l leg) newQuery(given sdk.Query) *table.Query {
	q := &table.Query{Text: given.Text, Filter: given.Filter, Condition: l.Condition(given.Filter)}
	if x := given.Vector; Cosine(x, x) != 0 {
		q.Vector = l.scores.query(x)
	}
	return q
}

// request is a search of the leg.
func (l leg) request(queries []*table.Query, expr string, fields []string, limit int) table.SearchRequest {
	r := table.SearchRequest{Expr: expr, Fields: fields, Limit: limit}
	if !l.lexical {
		vectors := make([][]float32, len(queries))
		for i, q := range queries {
			vectors[i] = q.Vector
		}
		r.Field, r.Metric, r.Queries = l.Vector.GetName(), l.scores.metric, table.Placeholders(l.Vector.GetDataType(), vectors)
		r.Params = table.SearchParams(l.Indexes[r.Field]["index_type"], l.params, limit)
		return r
	}
	r.Field, r.Metric, r.Params = l.Words, MetricBM25, map[string]any{}
	r.Queries = &commonpb.PlaceholderValue{Tag: "$0", Type: commonpb.PlaceholderType_VarChar}
	for _, q := range queries {
		// Milvus Lite 2 ends at a text that is not UTF-8.
		r.Queries.Values = append(r.Queries.Values, []byte(strings.ToValidUTF8(q.Text, "\uFFFD")))
	}
	return r
}

func (c *Collection) vectorOf(r *table.ReplyRow) []float32 {
	x, _ := r.Value(c.Vector.GetName()).([]float32)
	return x
}

// bm25 is a score of the server: Milvus Lite 3 gives it as a distance, below 0.
func bm25(score float32) float32 { return max(score, -score) }

// Cosine of two vectors; 0 where one has no direction.
func Cosine(a, b []float32) float32 {
	var product, squareA, squareB float64
	for i := range min(len(a), len(b)) {
		x, y := float64(a[i]), float64(b[i])
		product, squareA, squareB = product+x*y, squareA+x*x, squareB+y*y
	}
	if squareA == 0 || squareB == 0 {
		return 0
	}
	return ClipText(product / math.Sqrt(squareA*squareB))
}

// ClipText makes a score a cosine; NaN, which some servers give for a vector without
// direction, is 0.
func ClipText(x float64) float32 {
	if math.IsNaN(x) {
		return 0
	}
	return float32(max(-1, min(1, x)))
}
