package transformer

import "github.com/racflow/racflow/plugins/internal/simd"

// Norm has the learned parameters of [simd.Kernel.AddNorm].
type Norm struct {
	kernel     *simd.Kernel
	gain, bias []float32
	epsilon    float32
}

// add sets every row of x to the normalised sum of x and change.
func (n *Norm) add(x, change simd.View) {
	for i := range x.Rows {
		n.apply(x.Row(i), change.Row(i))
	}
}

func (n *Norm) apply(x, change []float32) {
	n.kernel.AddNorm(x, change, n.gain, n.bias, n.epsilon)
}

// Apply normalises x.
func (n *Norm) Apply(x []float32) { n.apply(x, make([]float32, len(x))) }

// of sets every row of dst to the normalised row of x; zero has as many zeros as a row has
// columns.
func (n *Norm) of(dst, x simd.View, zero []float32) {
	for i := range x.Rows {
		row := dst.Row(i)
		copy(row, x.Row(i))
		n.apply(row, zero)
	}
}
