package entries

import (
	"math"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
)

// scores describes how a server's scores become cosines.
type scores struct {
	metric string
	exact  bool    // the scores can be converted; otherwise cosines are computed from the vectors
	norm   float64 // mean norm of the vectors; 0: unknown
}

// scores returns the conversion for vectors of this mean norm; 0: norm 1, or unknown.
func (c *Collection) scores(norm float64) scores {
	metric := c.metric(c.Schema)
	return scores{metric: metric, exact: metric == table.MetricCosine || c.arguments.Normalized && norm == 0, norm: norm}
}

// note describes the conversion for people.
func (s scores) note() string {
	if s.exact {
		return "The server's scores (" + s.metric + ") are read as cosines."
	}
	return "The server's scores (" + s.metric + ") are no cosines where vectors have not norm 1: it chooses twice the candidates by them, and racflow orders these by the cosine. If all have norm 1, normalized = true saves that."
}

// query returns the query vector for the server. With L2, a vector of norm 1 is close to short vectors of any
// direction. So the query vector gets the mean norm of the collection.
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

// toCosine converts the score of an entry whose vector has norm 1 into a cosine.
func (s scores) toCosine(score float32) float32 {
	if s.metric == table.MetricL2 { // the square of the distance, which is 2 - 2 cos
		return clip(1 - float64(score)/2)
	}
	return clip(float64(score))
}

// cosine returns the cosine of two vectors; 0 if one of them is zero.
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

// clip limits a score to the range of cosines. It turns NaN, which some servers return for a zero vector, into 0.
func clip(x float64) float32 {
	if math.IsNaN(x) {
		return 0
	}
	return float32(max(-1, min(1, x)))
}
