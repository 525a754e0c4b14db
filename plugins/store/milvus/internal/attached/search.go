package attached

import (
	"context"
	"errors"
	"fmt"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/plugins/store/milvus/internal/expression"
	"github.com/racflow/racflow/plugins/store/milvus/internal/row"
	"github.com/racflow/racflow/sdk"
)

// workers is how many calls of one leg are on their way at a time.
const workers = 4

// query is one query, and what the legs found for it.
type query struct {
	sdk.Query
	vector    []float32 // as the server is asked; nil: none, or one without direction
	condition expression.Condition

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
	case !dense && c.words == "":
		return nil, sdk.Invalid(fmt.Errorf("no BM25 function fills a field of collection %q, so it cannot be searched by words: use mode %q", c.name, sdk.ModeDense))
	}
	lexical = lexical && c.words != ""
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
		return nil, fmt.Errorf("the query's vector has %d dimensions and those of collection %q have %d", len(x), c.name, c.dimension)
	case !row.Finite(x):
		return nil, errors.New("the query's vector has NaN or an infinity in it")
	case cosine(x, x) == 0:
	case c.scores.exact:
		q.vector = row.Unit(x)
	default:
		q.vector = x // what the server chooses depends on its norm, by some metrics
	}
	if given.Filter != nil {
		if err := given.Filter.Check(); err != nil {
			return nil, err
		}
	}
	q.condition = c.condition(given.Filter)
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

// fillDense gives the lexical hits of a query their cosines.
func (c *Collection) fillDense(ctx context.Context, q *query) error {
	if q.vector == nil || !c.scores.exact {
		return nil // there is none, or it came with the hits
	}
	known := scoresOf(q.dense, func(h hit) float32 { return h.dense })
	more, err := c.ask(ctx, missing(q.lexical, known), func(expr string, n int) request {
		return c.denseRequest([][]float32{q.vector}, expr, c.outputs(false, false, false), n)
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
// server finds none of the words.
func (c *Collection) fillLexical(ctx context.Context, q *query) error {
	known := scoresOf(q.lexical, func(h hit) float32 { return h.lexical })
	more, err := c.ask(ctx, missing(q.dense, known), func(expr string, n int) request {
		return c.lexicalRequest([]string{q.Text}, expr, c.outputs(false, false, false), n)
	})
	for i := range q.dense {
		h := &q.dense[i]
		if score, ok := known[h.key]; ok {
			h.lexical = score
		} else {
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
	expr, n := oneOf(place{field: c.key}, keys)
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

// denseRequest and lexicalRequest are searches of one leg.
func (c *Collection) denseRequest(vectors [][]float32, expr string, fields []string, limit int) request {
	return request{field: c.vector.GetName(), metric: c.scores.metric, queries: placeholders(c.vector.GetDataType(), vectors), expr: expr, fields: fields, limit: limit}
}

func (c *Collection) lexicalRequest(texts []string, expr string, fields []string, limit int) request {
	v := &commonpb.PlaceholderValue{Tag: "$0", Type: commonpb.PlaceholderType_VarChar}
	for _, text := range texts {
		v.Values = append(v.Values, []byte(text))
	}
	return request{field: c.words, metric: metricBM25, queries: v, expr: expr, fields: fields, limit: limit}
}

// bm25 is a score of the server: Milvus Lite 3 gives it as a distance, below 0.
func bm25(score float32) float32 { return max(score, -score) }
