package linear

import (
	"math"

	"github.com/racflow/racflow/plugins/internal/simd"
)

// Smoothing moves range from inputs to weights before both are rounded to int8: terms of
// an input that are often large are divided by a factor, and the weights that they meet
// are multiplied by it, so that products stay as they are (SmoothQuant, Xiao et al. 2022,
// arXiv:2211.10438). A nil Smoothing changes nothing.
type Smoothing struct{ input, weights []float32 }

// Smooth returns the smoothing for layers whose input is the output of a layer norm, with
// the weights of the one that loses most by rounding. Ranges are not measured on texts:
// an output of a layer norm with gain g and bias b is nearly always within 3|g|+|b|. A
// nil bias is zero. The result is nil for other precisions than [Int8].
func Smooth(p Precision, gain, bias []float32, w simd.View) *Smoothing {
	if len(gain) != w.Cols || bias != nil && len(bias) != w.Cols {
		panic("linear: layer norm and matrix differ in size")
	}
	if p != Int8 {
		return nil
	}
	tops := make([]float32, w.Cols)
	for i := range w.Rows {
		for j, v := range w.Row(i) {
			tops[j] = max(tops[j], v, -v)
		}
	}
	// Another layer behind the norm may use a term that this one hardly does: the factors of
	// terms are not driven apart by that without bound.
	const spread, least = 32, 1e-6
	lowest := least
	for _, top := range tops {
		lowest = max(lowest, float64(top)/spread)
	}
	s := &Smoothing{make([]float32, w.Cols), make([]float32, w.Cols)}
	for j, top := range tops {
		reach := 3 * math.Abs(float64(gain[j]))
		if bias != nil {
			reach += math.Abs(float64(bias[j]))
		}
		factor := math.Sqrt(max(reach, least) / max(float64(top), lowest))
		s.input[j], s.weights[j] = float32(1/factor), float32(factor)
	}
	return s
}

// apply writes the weights of an output as they are with smoothing.
func (s *Smoothing) apply(dst, weights []float32) []float32 {
	if s == nil {
		return weights
	}
	for j, v := range weights {
		dst[j] = v * s.weights[j]
	}
	return dst
}
