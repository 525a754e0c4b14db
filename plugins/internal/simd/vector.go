package simd

import "math"

// whole returns the part of n that the kernel's vector functions can take.
func (k *Kernel) whole(n int) int { return n &^ (k.lanes - 1) }

// Dot returns Σ a[i]·b[i]. It panics if the lengths differ.
func (k *Kernel) Dot(a, b []float32) float32 {
	if len(a) != len(b) {
		panic("simd: dot product of vectors of different length")
	}
	n := k.whole(len(a))
	return k.dot(a[:n], b[:n]) + dotPortable(a[n:], b[n:])
}

// Softmax replaces x by exp(scale·x[i]) / Σ exp(scale·x[j]). The scale must not
// be negative. Values whose exponential is below exp(-87) times the largest one
// become about 1e-38 instead of zero. Relative error: about 3e-7.
func (k *Kernel) Softmax(x []float32, scale float32) {
	if len(x) == 0 {
		return
	}
	n := k.whole(len(x))
	head, tail := x[:n], x[n:]
	top := max(k.maximum(head), maximumPortable(tail))
	sum := k.expSum(head, top, scale) + expSumPortable(tail, top, scale)
	k.scale(head, 1/sum)
	scalePortable(tail, 1/sum)
}

// ExpRows replaces every row of x by exp(scale·(x[i]-m)), where m is the largest value of
// the row, and sets sums to the sums of the rows: a softmax whose weights are yet to be
// divided by them. The scale must not be negative, and the columns a multiple of
// [ExpCols]. Values below exp(-87) become about 1e-38 instead of zero. Relative error: as
// that of [Kernel.Softmax]. Wrong shapes panic.
func (k *Kernel) ExpRows(x View, scale float32, sums []float32) {
	if len(sums) != x.Rows || x.Cols%ExpCols != 0 {
		panic("simd: shapes of a softmax do not fit")
	}
	if x.Rows == 0 || x.Cols == 0 {
		return
	}
	x.Row(x.Rows - 1) // panics where the data is too short
	if k.expRows != nil {
		k.expRows(x.Data, x.Rows, x.Cols, x.Stride, scale, sums)
		return
	}
	for i := range sums {
		row := x.Row(i)
		sums[i] = k.expSum(row, k.maximum(row), scale)
	}
}

// ExpCols is what the columns of [Kernel.ExpRows] are a multiple of.
const ExpCols = 16

// Scale multiplies x by a factor.
func (k *Kernel) Scale(x []float32, factor float32) {
	n := k.whole(len(x))
	k.scale(x[:n], factor)
	scalePortable(x[n:], factor)
}

// Add adds y to x. It panics if the lengths differ.
func (k *Kernel) Add(x, y []float32) {
	if len(x) != len(y) {
		panic("simd: sum of vectors of different length")
	}
	n := k.whole(len(x))
	k.addSum(x[:n], y[:n])
	addSumPortable(x[n:], y[n:])
}

// GELU replaces x by x·Φ(x), the exact form with the error function (Hendrycks
// and Gimpel 2016, arXiv:1606.08415). Absolute error: about 3e-7·max(1, |x|).
func (k *Kernel) GELU(x []float32) {
	n := k.whole(len(x))
	k.gelu(x[:n])
	geluPortable(x[n:])
}

// AddNorm sets x to the layer norm of x + change: mean 0 and variance 1, then a
// gain and a bias for each element (Ba et al. 2016, arXiv:1607.06450). The
// lengths must be equal. Error: about 1e-6 times the gain where epsilon does not
// exceed the variance.
func (k *Kernel) AddNorm(x, change, gain, bias []float32, epsilon float32) {
	if len(change) != len(x) || len(gain) != len(x) || len(bias) != len(x) {
		panic("simd: layer norm of vectors of different length")
	}
	n, count := k.whole(len(x)), float32(len(x))
	mean := (k.addSum(x[:n], change[:n]) + addSumPortable(x[n:], change[n:])) / count
	variance := (k.squares(x[:n], mean) + squaresPortable(x[n:], mean)) / count
	factor := 1 / float32(math.Sqrt(float64(variance+epsilon)))
	k.affine(x[:n], mean, factor, gain[:n], bias[:n])
	affinePortable(x[n:], mean, factor, gain[n:], bias[n:])
}
