package linear

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/racflow/racflow/plugins/internal/simd"
)

// TestPrecision checks that products of every kernel are as exact as in plain Go.
func TestPrecision(t *testing.T) {
	const rows, depth, cols = 64, 384, 128
	var portable float64
	for _, k := range append([]*simd.Kernel{simd.Portable()}, simd.Kernels()...) {
		r := rand.New(rand.NewPCG(3, 4))
		x, w := simd.NewView(randoms(r, rows*depth), rows, depth), simd.NewView(randoms(r, cols*depth), cols, depth)
		dst := simd.NewView(make([]float32, rows*cols), rows, cols)
		New(k, Float32, w, make([]float32, cols), nil).Mul(dst, NewInput(k, Float32).Set(x, nil), 0)
		var square float64
		for i := range rows {
			for j := range cols {
				want := 0.0
				for p, v := range x.Row(i) {
					want += float64(v) * float64(w.Row(j)[p])
				}
				square += (float64(dst.Row(i)[j]) - want) * (float64(dst.Row(i)[j]) - want)
			}
		}
		size := math.Sqrt(square / (rows * cols))
		if portable == 0 {
			portable = size
		}
		t.Logf("%v: root mean square error %.3g", k, size)
		if size > 2*portable {
			t.Errorf("%v: root mean square error %g, portable %g", k, size, portable)
		}
	}
}
