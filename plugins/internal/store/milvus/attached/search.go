package attached

import (
	"context"
	"fmt"
	"math"

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
	return scores{metric: metric, exact: metric == table.MetricCosine || c.arguments.Normalized && norm == 0, norm: norm}
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
	if s.metric == table.MetricL2 { // the square of the distance, which is 2 - 2 cos
		return ClipText(1 - float64(score)/2)
	}
	return ClipText(float64(score))
}

// leg is one leg of a search.
func (c *Collection) leg(lexical bool, search sdk.Search) table.Leg {
	s := c.scores(search.Norm)
	l := table.Leg{
		Rows: c.rows(), Field: c.Vector.GetName(), Metric: s.metric, Type: c.Vector.GetDataType(),
		Index: c.Indexes[c.Vector.GetName()]["index_type"], Params: c.params,
		Wanted: search.NumCandidates, First: search.NumCandidates, Score: s.cosine,
		Outputs: func(filtered bool) []string { return c.Outputs(false, filtered, !s.exact) },
		Exhausted: func(_ context.Context, q *table.Query) error {
			c.log.Warn("a filter leaves too few of the rows that a server returns at most", "collection", c.Name, "rows", table.MaxRows, "filter", q.Filter.String())
			return nil
		},
	}
	switch {
	case lexical:
		l.Field, l.Metric = c.Words, table.MetricBM25
		// Milvus Lite 3 gives it as a distance, below 0.
		l.Score = func(server float32) float32 { return max(server, -server) }
	case !s.exact:
		l.First = 2 * search.NumCandidates
	}
	l.Hit = func(q *table.Query, r table.Scored) (table.Hit, bool) {
		row := &table.Found{Key: c.KeyOf(r.ReplyRow), Entry: c.Entry(r.ReplyRow, false)}
		h := table.Hit{Found: row, Dense: sdk.Unscored, BM25: sdk.Unscored}
		switch {
		case lexical:
			h.BM25 = l.Score(r.Score)
		case s.exact:
			h.Dense = l.Score(r.Score)
		}
		if !s.exact && q.Vector != nil {
			h.Dense = Cosine(q.Vector, c.vectorOf(r.ReplyRow))
		}
		e := row.Entry
		return h, e.ID != "" && (q.Filter == nil || q.Filter.Match(e.ID, e.Label, c.ReadMeta(r.ReplyRow)))
	}
	return l
}

// Search finds the best entries of each leg.
func (c *Collection) Search(ctx context.Context, search sdk.Search, given []sdk.Query) ([]sdk.Hits, error) {
	dense, lexical, err := table.Modes(search.Mode)
	switch {
	case err != nil:
		return nil, err
	case !dense && c.Words == "":
		return nil, sdk.Invalid(fmt.Errorf("no BM25 function fills a field of collection %q, so it cannot be searched by words: use mode %q", c.Name, sdk.ModeDense))
	case c.Words == "":
		search.Mode = sdk.ModeDense
	}
	var legs []table.Leg
	if dense {
		legs = append(legs, c.leg(false, search))
	}
	if lexical && c.Words != "" {
		legs = append(legs, c.leg(true, search))
	}
	return table.Find(ctx, search, given, c.dimension, func(given sdk.Query) *table.Query {
		q := &table.Query{Text: given.Text, Filter: given.Filter, Condition: c.Condition(given.Filter)}
		if x := given.Vector; Cosine(x, x) != 0 {
			q.Vector = c.scores(search.Norm).query(x)
		}
		return q
	}, legs...)
}

func (c *Collection) vectorOf(r *table.ReplyRow) []float32 {
	x, _ := r.Value(c.Vector.GetName()).([]float32)
	return x
}

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
