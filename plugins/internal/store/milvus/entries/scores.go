package entries

import (
	"math"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
)

// scores says how the scores of a server become cosines.
type scores struct {
	metric string
	exact  bool    // they do; else cosines are computed from the vectors
	norm   float64 // that the vectors have on average; 0: not known
}

// scores are those of searches in vectors of this mean norm; 0: of norm 1, or not known.
func (c *Collection) scores(norm float64) scores {
	metric := c.metric(c.Schema)
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

// toCosine makes a score of an entry whose vector has norm 1 the cosine.
func (s scores) toCosine(score float32) float32 {
	if s.metric == table.MetricL2 { // the square of the distance, which is 2 - 2 cos
		return clip(1 - float64(score)/2)
	}
	return clip(float64(score))
}

// cosine of two vectors; 0 where one has no direction.
func cosine(a, b []float32) float32 {
	var product, squareA, squareB float64
	for i := range min(len(a), len(b)) {
		x, y := float64(a[i]), float64(b[i])
		product, squareA, squareB = product+x*y, squareA+x*x, squareB+y*y
	}
	if squareA == 0 || squareB == 0 {
		return 0
	}
	return clip(product / math.Sqrt(squareA*squareB))
}

// clip makes a score a cosine; NaN, which some servers give for a vector without
// direction, is 0.
func clip(x float64) float32 {
	if math.IsNaN(x) {
		return 0
	}
	return float32(max(-1, min(1, x)))
}
