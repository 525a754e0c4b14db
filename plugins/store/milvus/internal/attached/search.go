package attached

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/plugins/store/milvus/internal/column"
	"github.com/racflow/racflow/plugins/store/milvus/internal/expression"
	"github.com/racflow/racflow/plugins/store/milvus/internal/mapping"
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
	case !row.Finite(x):
		return nil, errors.New("the query's vector has NaN or an infinity in it")
	case column.Cosine(x, x) != 0:
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
	return request{field: c.Vector.GetName(), metric: c.scores.metric, queries: column.Placeholders(c.Vector.GetDataType(), vectors), expr: expr, fields: fields, limit: limit}
}

func (c *Collection) lexicalRequest(texts []string, expr string, fields []string, limit int) request {
	v := &commonpb.PlaceholderValue{Tag: "$0", Type: commonpb.PlaceholderType_VarChar}
	for _, text := range texts {
		// Milvus Lite 2 ends at a text that is not UTF-8.
		v.Values = append(v.Values, []byte(strings.ToValidUTF8(text, "\uFFFD")))
	}
	return request{field: c.Words, metric: mapping.MetricBM25, queries: v, expr: expr, fields: fields, limit: limit}
}

// bm25 is a score of the server: Milvus Lite 3 gives it as a distance, below 0.
func bm25(score float32) float32 { return max(score, -score) }
