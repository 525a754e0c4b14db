package minilm

import (
	"math"

	"github.com/racflow/racflow/plugins/internal/simd"
)

// layerNorm brings a row to mean 0 and variance 1 and then to a learned gain and
// bias (Ba et al. 2016, arXiv:1607.06450).
type layerNorm struct {
	gain, bias []float32
	epsilon    float32
}

// add sets every row of x to the normalised sum of x and change.
func (l *layerNorm) add(x, change simd.View) {
	for i := range x.Rows {
		row := x.Row(i)
		for j, v := range change.Row(i) {
			row[j] += v
		}
		l.apply(row)
	}
}

// apply normalises x in place.
func (l *layerNorm) apply(x []float32) {
	mean := sum(x) / float32(len(x))
	for i := range x {
		x[i] -= mean
	}
	variance := simd.Dot(x, x) / float32(len(x))
	factor := 1 / float32(math.Sqrt(float64(variance+l.epsilon)))
	gain, bias := l.gain[:len(x)], l.bias[:len(x)]
	for i, v := range x {
		x[i] = v*factor*gain[i] + bias[i]
	}
}

// sum keeps four sums, so that the additions do not wait for each other.
func sum(x []float32) float32 {
	var s [4]float32
	for ; len(x) >= 4; x = x[4:] {
		s[0] += x[0]
		s[1] += x[1]
		s[2] += x[2]
		s[3] += x[3]
	}
	for _, v := range x {
		s[0] += v
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}
