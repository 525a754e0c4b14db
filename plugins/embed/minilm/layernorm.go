package minilm

import "github.com/racflow/racflow/plugins/internal/simd"

// layerNorm has the learned parameters of [simd.Kernel.AddNorm].
type layerNorm struct {
	kernel     *simd.Kernel
	gain, bias []float32
	epsilon    float32
}

// add sets every row of x to the normalised sum of x and change.
func (l *layerNorm) add(x, change simd.View) {
	for i := range x.Rows {
		l.apply(x.Row(i), change.Row(i))
	}
}

func (l *layerNorm) apply(x, change []float32) {
	l.kernel.AddNorm(x, change, l.gain, l.bias, l.epsilon)
}
