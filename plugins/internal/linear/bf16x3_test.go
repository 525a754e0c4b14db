package linear

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/racflow/racflow/plugins/internal/simd"
)

// TestSplit checks that a float is the sum of its three parts, to the last bit.
func TestSplit(t *testing.T) {
	eachKernel(t, func(t *testing.T, k *simd.Kernel, r *rand.Rand) {
		if !hasTiles(k) {
			t.Skip("this kernel multiplies floats")
		}
		x := randoms(r, 3*stepCols)
		for i := range x {
			x[i] *= float32(math.Ldexp(1, r.IntN(160)-80))
		}
		copy(x, []float32{0, 1, -1, 0x1.fffffep0, 0x1.010102p0, 0x1.00ffffp0, 0x1.7f7f7fp100, -0x1.808081p-80})
		in := NewInput(k, Float32).Reset(1, len(x)).Set(0, simd.NewView(x, 1, len(x)))
		for i, want := range x {
			var sum float32
			for part := bf16Parts - 1; part >= 0; part-- {
				pair := math.Float32bits(in.data[(i/stepCols*bf16Parts+part)*tileDwords+i%16])
				if i%stepCols < 16 {
					pair <<= 16
				}
				sum += math.Float32frombits(pair &^ 0xffff)
			}
			if sum != want {
				t.Errorf("element %d, %x: the parts sum up to %x", i, want, sum)
			}
		}
	})
}

// TestPrecision checks that products of bf16x3 are as exact as those of floats.
func TestPrecision(t *testing.T) {
	const rows, depth, cols = 64, 384, 128
	var portable float64
	for _, k := range append([]*simd.Kernel{simd.Portable()}, simd.Kernels()...) {
		r := rand.New(rand.NewPCG(3, 4))
		x, w := simd.NewView(randoms(r, rows*depth), rows, depth), simd.NewView(randoms(r, cols*depth), cols, depth)
		dst := simd.NewView(make([]float32, rows*cols), rows, cols)
		New(k, Float32, w, make([]float32, cols)).Mul(dst, NewInput(k, Float32).Reset(rows, depth).Set(0, x), 0)
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
