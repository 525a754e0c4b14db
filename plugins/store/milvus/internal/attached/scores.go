package attached

import (
	"context"
	"math"

	"github.com/racflow/racflow/plugins/store/milvus/internal/column"
	"github.com/racflow/racflow/plugins/store/milvus/internal/mapping"
	"github.com/racflow/racflow/plugins/store/milvus/internal/row"
)

// scores says how the scores of a server become cosines.
type scores struct {
	metric string
	exact  bool    // they do; else cosines are computed from the vectors
	norm   float64 // that the vectors have on average, as far as they are known; 0: there are none
	note   string  // a sentence for people
}

// query is the vector that the server is asked for. By L2 a vector with norm 1 is near to short vectors
// wherever they point, so it gets the norm that vectors of the collection have.
func (s scores) query(x []float32) []float32 {
	if s.exact || s.norm == 0 {
		return row.Unit(x)
	}
	scale, out := s.norm/column.Norm(x), make([]float32, len(x))
	for i, v := range x {
		out[i] = float32(scale * float64(v))
	}
	return out
}

// cosine makes a score of an entry whose vector has norm 1 the cosine.
func (s scores) cosine(score float32) float32 {
	if s.metric == mapping.MetricL2 { // the square of the distance, which is 2 - 2 cos
		return column.Clip(1 - float64(score)/2)
	}
	return column.Clip(float64(score))
}

// tolerance is how far a cosine may be off that is made of a score; vectors of 16
// bits are off by some of it.
const tolerance = 0.005

// calibrate finds out whether scores are cosines, by a search among the first rows.
func (c *Collection) calibrate(ctx context.Context, first []*column.Row) error {
	c.scores = scores{metric: c.Metric(c.Schema)}
	vectors := map[string][]float32{}
	var keys []string
	var query []float32
	directed := 0.0 // vectors that are not all zero, whose distance by L2 says nothing of the cosine
	for _, r := range first {
		x, _ := r.Value(c.Vector.GetName()).([]float32)
		if len(x) != c.dimension {
			continue
		}
		key := c.KeyOf(r)
		vectors[key], keys = x, append(keys, key)
		if column.Cosine(x, x) > 0 {
			query = row.Unit(x)
			c.scores.norm += column.Norm(x)
			directed++
		}
	}
	c.scores.norm /= max(directed, 1)
	if query == nil {
		c.scores.exact = c.scores.metric == mapping.MetricCosine
		c.scores.note = "None of the first rows has a vector."
		return nil
	}
	expr, n := mapping.OneOf(mapping.Place{Field: c.Key}, keys)
	if n == 0 { // no literal can name their keys
		expr, n = "", sampleRows
	}
	lists, err := c.search(ctx, c.denseRequest([][]float32{query}, expr, c.Outputs(false, false, false), n))
	if err != nil {
		return err
	}
	c.scores.exact = len(lists[0]) > 0
	for _, found := range lists[0] {
		if x := vectors[found.key]; x != nil && math.Abs(float64(c.scores.cosine(found.score)-column.Cosine(query, x))) > tolerance {
			c.scores.exact = false
		}
	}
	if c.scores.exact && c.scores.metric == mapping.MetricL2 {
		if c.scores.exact, err = c.allLong(ctx); err != nil {
			return err
		}
	}
	c.scores.note = "The server's scores (" + c.scores.metric + ") are read as cosines."
	if c.scores.exact && c.scores.metric != mapping.MetricCosine {
		c.scores.note = "The server's scores (" + c.scores.metric + ") are read as cosines if the norms in the sample are 1; else racflow orders by the cosine what the server chooses by them, twice the candidates."
	}
	if !c.scores.exact {
		c.scores.note = "The server's scores (" + c.scores.metric + ") are no cosines, as where vectors have not norm 1: it chooses twice the candidates by them, and racflow orders these by the cosine."
	}
	return nil
}

// measured is the collection where vectors beyond the first rows have this mean norm; 0: there is none that
// is not 1.
func (c *Collection) measured(norm float64) *Collection {
	if norm == 0 || c.scores.metric == mapping.MetricCosine {
		return c
	}
	other := *c
	other.scores.exact, other.scores.norm = false, norm
	return &other
}

// allLong reports whether no vector of the collection is shorter than norm 1: the one
// that is nearest to zero is the shortest. A vector that is all zero, as a failed embedder
// leaves it, would pass for one with the cosine 0.5.
func (c *Collection) allLong(ctx context.Context) (bool, error) {
	lists, err := c.search(ctx, c.denseRequest([][]float32{make([]float32, c.dimension)}, "", c.Outputs(false, false, false), 1))
	if err != nil {
		return false, err
	}
	return len(lists[0]) > 0 && lists[0][0].score > 1-2*tolerance, nil
}
