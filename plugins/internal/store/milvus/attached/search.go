package attached

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
)

// fillDense gives the lexical hits of a query their cosines.
func (c *Collection) fillDense(ctx context.Context, q *query) error {
	if q.vector == nil || !c.scores.exact {
		return nil // there is none, or it came with the hits
	}
	known := scoresOf(q.dense, func(h hit) float32 { return h.dense })
	more, err := c.ask(ctx, missing(q.lexical, known), func(expr string, n int) request {
		return c.denseRequest([][]float32{q.vector}, expr, c.Outputs(false, false, false), n)
	})
	for i := range q.lexical {
		h := &q.lexical[i]
		if score, ok := known[h.key]; ok {
			h.dense = score
		} else if score, ok := more[h.key]; ok {
			h.dense = c.scores.cosine(score)
		}
	}
	return err
}

// fillLexical gives the dense hits of a query their scores by words: 0 where the
// server finds none of the words; Unscored where no literal can name their keys.
func (c *Collection) fillLexical(ctx context.Context, q *query) error {
	known := scoresOf(q.lexical, func(h hit) float32 { return h.lexical })
	more, err := c.ask(ctx, missing(q.dense, known), func(expr string, n int) request {
		return c.lexicalRequest([]string{q.Text}, expr, c.Outputs(false, false, false), n)
	})
	for i := range q.dense {
		h := &q.dense[i]
		if score, ok := known[h.key]; ok {
			h.lexical = score
		} else if _, asked := OneOf(Place{Field: c.Key}, []string{h.key}); asked == 1 {
			h.lexical = bm25(more[h.key])
		}
	}
	return err
}

func scoresOf(hits []hit, score func(hit) float32) map[string]float32 {
	known := map[string]float32{}
	for _, h := range hits {
		known[h.key] = score(h)
	}
	return known
}

func missing(hits []hit, known map[string]float32) (keys []string) {
	for _, h := range hits {
		if _, ok := known[h.key]; !ok {
			keys = append(keys, h.key)
		}
	}
	return keys
}

// ask searches among a few rows and returns the server's scores.
func (c *Collection) ask(ctx context.Context, keys []string, make func(expr string, n int) request) (map[string]float32, error) {
	found := map[string]float32{}
	expr, n := OneOf(Place{Field: c.Key}, keys)
	if n == 0 {
		return found, nil
	}
	lists, err := c.search(ctx, make(expr, n))
	if err != nil {
		return nil, err
	}
	for _, r := range lists[0] {
		found[r.key] = r.score
	}
	return found, nil
}

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
		if r.id == "" || seen[r.id] || q.Filter != nil && !q.Filter.Match(r.id, l.LabelOf(r.ColumnRow), l.ReadMeta(r.ColumnRow)) {
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

// entries are the hits as the SDK takes them. Where their texts did not come with
// them, it gets those by their ids.
func (l leg) entries(hits []hit) []sdk.Hit {
	all := make([]sdk.Hit, len(hits))
	for i, h := range hits {
		all[i] = sdk.Hit{ID: h.id, Dense: h.dense, Lexical: h.lexical}
		if !l.asked.Texts || l.HasTexts(h.ColumnRow) {
			e := l.Entry(h.ColumnRow, l.asked.Texts)
			all[i].Entry = &e
		}
	}
	return all
}

// request is one search of the server.
type request struct {
	field   string
	metric  string
	queries *commonpb.PlaceholderValue
	expr    string
	fields  []string
	limit   int
}

// scored is a row that a search found.
type scored struct {
	*ColumnRow
	key   string
	id    string
	score float32
}

// search returns what a server finds for each query, best first.
func (c *Collection) search(ctx context.Context, q request) ([][]scored, error) {
	group, err := proto.Marshal(&commonpb.PlaceholderGroup{Placeholders: []*commonpb.PlaceholderValue{q.queries}})
	if err != nil {
		return nil, err
	}
	params, err := json.Marshal(c.searchParams(q.field, q.limit))
	if err != nil {
		return nil, err
	}
	n := len(q.queries.GetValues())
	lists := make([][]scored, n)
	err = c.call(ctx, "search "+c.Name, func(ctx context.Context, s Service) error {
		reply, err := s.Search(ctx, &milvuspb.SearchRequest{
			CollectionName: c.Name, PartitionNames: c.arguments.Partitions, Dsl: q.expr, DslType: commonpb.DslType_BoolExprV1, PlaceholderGroup: group, Nq: int64(n),
			OutputFields: q.fields, UseDefaultConsistency: true,
			SearchParams: pairs(map[string]string{"anns_field": q.field, "metric_type": q.metric, "topk": strconv.Itoa(q.limit), "params": string(params), "round_decimal": "-1"}),
		})
		if err != nil {
			return err
		}
		return c.split(reply.GetResults(), lists)
	})
	return lists, c.explainError(err)
}

// split makes a list of each query's rows.
func (c *Collection) split(results *schemapb.SearchResultData, lists [][]scored) error {
	clear(lists)
	all, err := c.rows(results.GetFieldsData(), results.GetIds())
	if err != nil {
		return err
	}
	scores, lengths := results.GetScores(), results.GetTopks()
	if len(scores) != len(all) || len(all) > 0 && len(lengths) != len(lists) {
		return fmt.Errorf("the server returned %d scores, %d rows and %d lists for %d queries", len(scores), len(all), len(lengths), len(lists))
	}
	at := 0
	for i := range min(len(lists), len(lengths)) {
		for range lengths[i] {
			if at == len(all) {
				return fmt.Errorf("the server returned %d rows, fewer than it counts", len(all))
			}
			lists[i] = append(lists[i], scored{all[at], c.KeyOf(all[at]), c.IDOf(all[at]), scores[at]})
			at++
		}
	}
	return nil
}

// searchParams are those from the file, and what an index needs to find so many rows.
func (c *Collection) searchParams(field string, limit int) map[string]any {
	params := map[string]any{}
	if field != c.Vector.GetName() {
		return params
	}
	for name, text := range c.params {
		params[name] = text
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			params[name] = n
		}
	}
	enough := map[string]string{"HNSW": "ef", "DISKANN": "search_list"}
	for index, name := range enough {
		given, _ := params[name].(float64)
		if strings.HasPrefix(c.Indexes[field]["index_type"], index) {
			params[name] = max(int(given), limit, 64)
		}
	}
	return params
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
	c = c.measured(search.Norm)
	dense, lexical := search.Mode != sdk.ModeLexical, search.Mode != sdk.ModeDense
	switch {
	case dense && lexical && search.Mode != sdk.ModeHybrid:
		return nil, sdk.Invalid(fmt.Errorf("unknown search mode %q", search.Mode))
	case !dense && c.Words == "":
		return nil, sdk.Invalid(fmt.Errorf("no BM25 function fills a field of collection %q, so it cannot be searched by words: use mode %q", c.Name, sdk.ModeDense))
	}
	lexical = lexical && c.Words != ""
	hits := make([]sdk.Hits, len(given))
	invalid := sdk.RowErrors{}
	var at []int
	var queries []*query
	for i, q := range given {
		parsed, err := c.newQuery(q, dense)
		if err != nil {
			invalid[i] = sdk.Invalid(err)
			continue
		}
		at, queries = append(at, i), append(queries, parsed)
	}
	l := leg{Collection: c, asked: search}
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

func (c *Collection) newQuery(given sdk.Query, needsVector bool) (*query, error) {
	q := &query{Query: given}
	switch x := given.Vector; {
	case len(x) == 0 && needsVector:
		return nil, errors.New("the query has no vector")
	case len(x) > 0 && len(x) != c.dimension:
		return nil, fmt.Errorf("the query's vector has %d dimensions and those of collection %q have %d", len(x), c.Name, c.dimension)
	case !table.Finite(x):
		return nil, errors.New("the query's vector has NaN or an infinity in it")
	case Cosine(x, x) != 0:
		q.vector = c.scores.query(x)
	}
	if given.Filter != nil {
		if err := given.Filter.Check(); err != nil {
			return nil, err
		}
	}
	q.condition = c.Condition(given.Filter)
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
	g.SetLimit(2 * workers)
	for _, q := range queries {
		g.Go(func() error { return l.fillDense(ctx, q) })
		if dense {
			g.Go(func() error { return l.fillLexical(ctx, q) })
		}
	}
	return g.Wait()
}

// denseRequest and lexicalRequest are searches of one leg.
func (c *Collection) denseRequest(vectors [][]float32, expr string, fields []string, limit int) request {
	return request{field: c.Vector.GetName(), metric: c.scores.metric, queries: Placeholders(c.Vector.GetDataType(), vectors), expr: expr, fields: fields, limit: limit}
}

func (c *Collection) lexicalRequest(texts []string, expr string, fields []string, limit int) request {
	v := &commonpb.PlaceholderValue{Tag: "$0", Type: commonpb.PlaceholderType_VarChar}
	for _, text := range texts {
		// Milvus Lite 2 ends at a text that is not UTF-8.
		v.Values = append(v.Values, []byte(strings.ToValidUTF8(text, "\uFFFD")))
	}
	return request{field: c.Words, metric: MetricBM25, queries: v, expr: expr, fields: fields, limit: limit}
}

// bm25 is a score of the server: Milvus Lite 3 gives it as a distance, below 0.
func bm25(score float32) float32 { return max(score, -score) }
