package attached

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"golang.org/x/sync/errgroup"

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

// fill gives each of the two legs of a query the scores that the other one knows, or that the
// server computes: the cosines where they are the server's scores, else they came with the hits. By
// words it finds nothing where an entry has none of them. A row whose key no expression can
// name keeps no score.
func (l leg) fill(ctx context.Context, q *query) error {
	if q.vector != nil && l.scores.exact {
		given, err := l.ask(ctx, q.lexical, q.dense, func(expr string, n int) table.SearchRequest {
			return l.denseRequest([][]float32{q.vector}, expr, l.Outputs(false, false, false), n)
		})
		if err != nil {
			return err
		}
		for i := range q.lexical {
			if score, ok := given[q.lexical[i].key]; ok {
				q.lexical[i].dense = l.scores.cosine(score)
			}
		}
	}
	given, err := l.ask(ctx, q.dense, q.lexical, func(expr string, n int) table.SearchRequest {
		return l.lexicalRequest([]string{q.Text}, expr, l.Outputs(false, false, false), n)
	})
	for i := range q.dense {
		h := &q.dense[i]
		score, ok := given[h.key]
		if _, named := OneOf(Place{Field: l.Key}, []string{h.key}); ok || named == 1 {
			h.lexical = bm25(score)
		}
	}
	return err
}

// ask returns the server's scores of hits by the keys: those that the other leg has found, and
// those of a search among the rest.
func (l leg) ask(ctx context.Context, hits, other []hit, search func(expr string, n int) table.SearchRequest) (map[string]float32, error) {
	given := map[string]float32{}
	for _, h := range other {
		given[h.key] = h.Score
	}
	var keys []string
	for _, h := range hits {
		if _, ok := given[h.key]; !ok {
			keys = append(keys, h.key)
		}
	}
	expr, n := OneOf(Place{Field: l.Key}, keys)
	if n == 0 {
		return given, nil
	}
	lists, err := l.search(ctx, search(expr, n))
	if err != nil {
		return nil, err
	}
	for _, r := range lists[0] {
		given[r.key] = r.Score
	}
	return given, nil
}

// leg is one leg of a search: the dense one unless it is lexical.
type leg struct {
	*Collection
	scores  scores
	asked   sdk.Search
	lexical bool
}

// rowsPerCall is about how many rows a call asks for: a reply has to fit a message, with a
// vector or metadata in each row.
const rowsPerCall = 4096

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
	for limit = min(limit, table.MaxRows); ; limit = min(4*limit, table.MaxRows) {
		var unsure []*query
		for part := range slices.Chunk(queries, max(1, rowsPerCall/limit)) {
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
		if limit == table.MaxRows {
			l.log.Warn("a filter leaves too few of the rows that a server returns at most", "collection", l.Name, "rows", table.MaxRows, "filter", queries[0].Filter.String())
			return nil
		}
	}
}

func (l leg) lists(ctx context.Context, queries []*query, limit int) ([][]scored, error) {
	// A filter that the server cannot check gives the same expression as none.
	filtered := slices.ContainsFunc(queries, func(q *query) bool { return q.Filter != nil })
	fields := l.Outputs(false, filtered, !l.scores.exact)
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
		if r.id == "" || seen[r.id] || q.Filter != nil && !q.Filter.Match(r.id, l.LabelOf(r.ReplyRow), l.ReadMeta(r.ReplyRow)) {
			continue
		}
		seen[r.id] = true
		h := hit{scored: r, dense: sdk.Unscored, lexical: sdk.Unscored}
		if l.lexical {
			h.lexical = bm25(r.Score)
		} else if l.scores.exact {
			h.dense = l.scores.cosine(r.Score)
		}
		if !l.scores.exact && q.vector != nil {
			x, _ := r.Value(l.Vector.GetName()).([]float32)
			h.dense = Cosine(q.vector, x)
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

// entries are the hits as the SDK takes them. It gets texts by the ids, of those that it keeps.
func (l leg) entries(hits []hit) []sdk.Hit {
	all := make([]sdk.Hit, len(hits))
	for i, h := range hits {
		all[i] = sdk.Hit{ID: h.id, Dense: h.dense, Lexical: h.lexical}
		if !l.asked.Texts {
			all[i].Entry = &sdk.Entry{ID: h.id, Label: l.LabelOf(h.ReplyRow)}
		}
	}
	return all
}

// scored is a row that a search found.
type scored struct {
	table.Scored
	key, id string
}

// search returns what a server finds for each query, best first.
func (c *Collection) search(ctx context.Context, q table.SearchRequest) ([][]scored, error) {
	request, err := q.Message(c.Name)
	if err != nil {
		return nil, err
	}
	request.PartitionNames, request.UseDefaultConsistency = c.arguments.Partitions, true
	lists := make([][]scored, request.GetNq())
	err = c.call(ctx, "search "+c.Name, func(ctx context.Context, s Service) error {
		reply, err := s.Search(ctx, request)
		if err != nil {
			return err
		}
		found, err := table.Lists(reply.GetResults(), c.Key.GetName(), len(lists))
		for i, list := range found {
			lists[i] = make([]scored, len(list))
			for j, r := range list {
				lists[i][j] = scored{r, c.KeyOf(r.ReplyRow), c.IDOf(r.ReplyRow)}
			}
		}
		return err
	})
	return lists, c.explainError(err)
}

// workers is how many calls of one leg are on their way at a time.
const workers = 4

// query is one query, and what the legs found for it.
type query struct {
	sdk.Query
	vector    []float32 // as the server is asked; nil: none, or one without direction
	condition table.Condition

	dense, lexical []hit
}

// hit is a row that a leg found, with the scores of both.
type hit struct {
	scored
	dense, lexical float32
}

// Search finds the best entries of each leg.
func (c *Collection) Search(ctx context.Context, search sdk.Search, given []sdk.Query) ([]sdk.Hits, error) {
	dense, lexical := search.Mode != sdk.ModeLexical, search.Mode != sdk.ModeDense
	switch {
	case dense && lexical && search.Mode != sdk.ModeHybrid:
		return nil, sdk.Invalid(fmt.Errorf("unknown search mode %q", search.Mode))
	case !dense && c.Words == "":
		return nil, sdk.Invalid(fmt.Errorf("no BM25 function fills a field of collection %q, so it cannot be searched by words: use mode %q", c.Name, sdk.ModeDense))
	}
	lexical = lexical && c.Words != ""
	l := leg{Collection: c, scores: c.scores(search.Norm), asked: search}
	hits := make([]sdk.Hits, len(given))
	invalid := sdk.RowErrors{}
	var at []int
	var queries []*query
	for i, q := range given {
		parsed, err := l.newQuery(q, dense)
		if err != nil {
			invalid[i] = sdk.Invalid(err)
			continue
		}
		at, queries = append(at, i), append(queries, parsed)
	}
	if search.NumCandidates > 0 {
		if err := l.both(ctx, queries, dense, lexical); err != nil {
			return nil, err
		}
	}
	for i, q := range queries {
		if dense {
			hits[at[i]].Dense = l.entries(q.dense)
		}
		if lexical {
			hits[at[i]].Lexical = l.entries(q.lexical)
		}
	}
	if len(invalid) > 0 {
		return hits, invalid
	}
	return hits, nil
}

func (l leg) newQuery(given sdk.Query, needsVector bool) (*query, error) {
	if err := table.CheckQuery(given, l.dimension, needsVector); err != nil {
		return nil, err
	}
	q := &query{Query: given, condition: l.Condition(given.Filter)}
	if x := given.Vector; Cosine(x, x) != 0 {
		q.vector = l.scores.query(x)
	}
	return q, nil
}

// both searches with the legs at once, and then for the scores that one leg knows of
// what the other found.
func (l leg) both(ctx context.Context, queries []*query, dense, lexical bool) error {
	g, legs := errgroup.WithContext(ctx)
	if lexical {
		words := l
		words.lexical = true
		g.Go(func() error { return words.run(legs, queries) })
	}
	if dense {
		g.Go(func() error { return l.run(legs, queries) })
	}
	if err := g.Wait(); err != nil || !lexical {
		return err
	}
	g, ctx = errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for _, q := range queries {
		g.Go(func() error { return l.fill(ctx, q) })
	}
	return g.Wait()
}

// denseRequest and lexicalRequest are searches of one leg.
func (l leg) denseRequest(vectors [][]float32, expr string, fields []string, limit int) table.SearchRequest {
	field := l.Vector.GetName()
	return table.SearchRequest{
		Field: field, Metric: l.scores.metric, Queries: table.Placeholders(l.Vector.GetDataType(), vectors), Expr: expr, Fields: fields, Limit: limit,
		Params: table.SearchParams(l.Indexes[field]["index_type"], l.params, limit),
	}
}

func (c *Collection) lexicalRequest(texts []string, expr string, fields []string, limit int) table.SearchRequest {
	v := &commonpb.PlaceholderValue{Tag: "$0", Type: commonpb.PlaceholderType_VarChar}
	for _, text := range texts {
		// Milvus Lite 2 ends at a text that is not UTF-8.
		v.Values = append(v.Values, []byte(strings.ToValidUTF8(text, "\uFFFD")))
	}
	return table.SearchRequest{Field: c.Words, Metric: MetricBM25, Queries: v, Params: map[string]any{}, Expr: expr, Fields: fields, Limit: limit}
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
