package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// epsilon is the distance from 1 to the next float32, half of it the rounding error.
const epsilon = 1.0 / (1 << 23)

// randoms returns n floats at an unaligned place in memory. The memory after them is filled with a value that would
// show in every result.
func randoms(r *rand.Rand, n int) []float32 {
	offset := r.IntN(17)
	all := make([]float32, offset+n+64)
	for i := range all {
		all[i] = 1e30
	}
	x := all[offset : offset+n : offset+n]
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

func eachKernel(t *testing.T, f func(t *testing.T, k *Kernel, r *rand.Rand)) {
	for _, k := range Kernels() {
		t.Run(k.String(), func(t *testing.T) { f(t, k, rand.New(rand.NewPCG(1, 2))) })
	}
}

func TestKernels(t *testing.T) {
	ks := Kernels()
	if ks[0] != Best() || ks[len(ks)-1] != Portable() || Portable().String() != "portable" {
		t.Fatalf("kernels = %v, best %v, portable %v", ks, Best(), Portable())
	}
}

func TestDot(t *testing.T) {
	eachKernel(t, func(t *testing.T, k *Kernel, r *rand.Rand) {
		for n := range 300 {
			a, b := randoms(r, n), randoms(r, n)
			var want, size float64
			for i := range a {
				want += float64(a[i]) * float64(b[i])
				size += math.Abs(float64(a[i]) * float64(b[i]))
			}
			bound := float64(n+1) * epsilon * size
			if got := float64(k.Dot(a, b)); math.Abs(got-want) > bound {
				t.Fatalf("length %d: got %v, want %v within %g", n, got, want, bound)
			}
		}
	})
}

func TestDotLengthsDiffer(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	Dot(make([]float32, 3), make([]float32, 4))
}

func TestMul(t *testing.T) {
	eachKernel(t, func(t *testing.T, k *Kernel, r *rand.Rand) {
		m, s := k.NewMatrix(), new(Scratch) // shared, so that stale memory would show
		for range 150 {
			rows, depth, cols := r.IntN(80), 1+r.IntN(100), 1+r.IntN(100)
			x := View{Rows: rows, Cols: depth, Stride: depth + r.IntN(5)}
			x.Data = randoms(r, rows*x.Stride)
			w := View{Rows: cols, Cols: depth, Stride: depth + r.IntN(5)}
			w.Data = randoms(r, cols*w.Stride)
			bias := randoms(r, cols)
			if r.IntN(2) == 0 {
				bias = nil
			}
			checkProduct(t, m.PackRows(w, bias).Mul, x, w, bias, s)
			checkProduct(t, m.PackCols(transposed(w)).Mul, x, w, nil, s)
		}
	})
}

// checkProduct compares x·m with the sum of products in float64, and checks that nothing was written outside the
// result.
func checkProduct(t *testing.T, mul func(dst, x View, s *Scratch), x, w View, bias []float32, s *Scratch) {
	t.Helper()
	const untouched = 12345
	dst := View{Rows: x.Rows, Cols: w.Rows, Stride: w.Rows + 3}
	dst.Data = make([]float32, x.Rows*dst.Stride+40)
	for i := range dst.Data {
		dst.Data[i] = untouched
	}
	mul(dst, x, s)
	for i := range dst.Rows {
		for j := range dst.Cols {
			var want, size float64
			if bias != nil {
				want, size = float64(bias[j]), math.Abs(float64(bias[j]))
			}
			for p, v := range x.Row(i) {
				product := float64(v) * float64(w.Row(j)[p])
				want += product
				size += math.Abs(product)
			}
			bound := float64(x.Cols+1) * epsilon * size
			if got := float64(dst.Row(i)[j]); math.Abs(got-want) > bound {
				t.Fatalf("%d×%d times %d×%d, element (%d, %d): got %v, want %v within %g",
					x.Rows, x.Cols, x.Cols, w.Rows, i, j, got, want, bound)
			}
		}
	}
	for i, v := range dst.Data {
		if (i%dst.Stride >= dst.Cols || i/dst.Stride >= dst.Rows) && v != untouched {
			t.Fatalf("wrote outside the result, at float %d", i)
		}
	}
}

func transposed(w View) View {
	v := NewView(make([]float32, w.Rows*w.Cols), w.Cols, w.Rows)
	for i := range w.Rows {
		for j, x := range w.Row(i) {
			v.Row(j)[i] = x
		}
	}
	return v
}

func TestMulWrongShape(t *testing.T) {
	m := Best().NewMatrix().PackRows(NewView(make([]float32, 6), 2, 3), nil)
	for name, x := range map[string]View{
		"depth":      NewView(make([]float32, 4), 1, 4),
		"short data": {Data: make([]float32, 5), Rows: 2, Cols: 3, Stride: 3},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			m.Mul(NewView(make([]float32, 2*x.Rows), x.Rows, 2), x, new(Scratch))
		})
	}
}

func TestSoftmax(t *testing.T) {
	eachKernel(t, func(t *testing.T, k *Kernel, r *rand.Rand) {
		for n := range 200 {
			x := randoms(r, n)
			spread := math.Exp(r.NormFloat64() * 2)
			want := make([]float64, n)
			top, sum := math.Inf(-1), 0.0
			for _, v := range x {
				top = max(top, float64(v))
			}
			for i, v := range x {
				want[i] = math.Exp((float64(v) - top) * float64(float32(spread)))
				sum += want[i]
			}
			k.Softmax(x, float32(spread))
			for i, got := range x {
				// The error of the exponent's argument grows with the argument.
				arg := math.Abs(math.Log(want[i]))
				bound := (10 + arg) * epsilon * want[i] / sum
				if math.Abs(float64(got)-want[i]/sum) > bound+1e-37 {
					t.Fatalf("length %d, element %d: got %v, want %v", n, i, got, want[i]/sum)
				}
			}
		}
	})
}

func TestAddAndScale(t *testing.T) {
	eachKernel(t, func(t *testing.T, k *Kernel, r *rand.Rand) {
		for n := range 100 {
			x, y := randoms(r, n), randoms(r, n)
			sums, doubles := make([]float32, n), make([]float32, n)
			for i := range x {
				sums[i], doubles[i] = x[i]+y[i], 2*y[i]
			}
			k.Add(x, y)
			k.Scale(y, 2)
			if !slices.Equal(x, sums) || !slices.Equal(y, doubles) {
				t.Fatalf("length %d: got %v and %v, want %v and %v", n, x, y, sums, doubles)
			}
		}
	})
}

func TestExpRows(t *testing.T) {
	eachKernel(t, func(t *testing.T, k *Kernel, r *rand.Rand) {
		for range 200 {
			x := View{Rows: r.IntN(20), Cols: ExpCols * r.IntN(15)}
			x.Stride = x.Cols + r.IntN(5)
			x.Data = randoms(r, x.Rows*x.Stride+3)
			if x.Cols > 0 && x.Rows > 0 {
				x.Row(0)[x.Cols-1] = -math.MaxFloat32
			}
			spread := float32(math.Exp(r.NormFloat64() * 2))
			in, sums := slices.Clone(x.Data), make([]float32, x.Rows)
			k.ExpRows(x, spread, sums)
			got := slices.Clone(x.Data)
			for i := range x.Rows {
				row, sum := in[i*x.Stride:][:x.Cols], 0.0
				for j, v := range row {
					arg := (float64(v) - float64(slices.Max(row))) * float64(spread)
					want := math.Exp(max(arg, -87))
					sum += want
					if bound := (10 - max(arg, -87)) * epsilon * want; math.Abs(float64(x.Row(i)[j])-want) > bound {
						t.Fatalf("exp(%v): got %v, want %v within %g", arg, x.Row(i)[j], want, bound)
					}
				}
				if math.Abs(float64(sums[i])-sum) > 100*epsilon*sum {
					t.Fatalf("row %d: sum %v, want %v", i, sums[i], sum)
				}
				copy(got[i*x.Stride:][:x.Cols], row)
			}
			if !slices.Equal(got, in) {
				t.Fatal("wrote outside the rows")
			}
		}
	})
}

func TestGELU(t *testing.T) {
	eachKernel(t, func(t *testing.T, k *Kernel, r *rand.Rand) {
		for n := range 200 {
			x := randoms(r, n)
			for i := range x {
				x[i] *= 4
			}
			in := append([]float32(nil), x...)
			k.GELU(x)
			for i, got := range x {
				v := float64(in[i])
				want := v / 2 * math.Erfc(-v/math.Sqrt2)
				if bound := 3e-7 * max(1, math.Abs(v)); math.Abs(float64(got)-want) > bound {
					t.Fatalf("gelu(%v) = %v, want %v", v, got, want)
				}
			}
		}
	})
}

func TestAddNorm(t *testing.T) {
	eachKernel(t, func(t *testing.T, k *Kernel, r *rand.Rand) {
		for n := 2; n < 200; n++ {
			x, change, gain, bias := randoms(r, n), randoms(r, n), randoms(r, n), randoms(r, n)
			const epsilon = 1e-6
			sums := make([]float64, n)
			var mean, variance float64
			for i := range x {
				sums[i] = float64(x[i]) + float64(change[i])
				mean += sums[i] / float64(n)
			}
			for _, v := range sums {
				variance += (v - mean) * (v - mean) / float64(n)
			}
			kept := append([]float32(nil), change...)
			k.AddNorm(x, change, gain, bias, epsilon)
			for i, got := range x {
				centred := (sums[i] - mean) / math.Sqrt(variance+epsilon)
				want := centred*float64(gain[i]) + float64(bias[i])
				size := math.Abs(float64(gain[i]))*(1+math.Abs(mean)/math.Sqrt(variance)+math.Abs(centred)) + math.Abs(float64(bias[i]))
				if bound := float64(n+8) / 4 * 0x1p-23 * size; math.Abs(float64(got)-want) > bound {
					t.Fatalf("length %d, element %d: got %v, want %v within %g", n, i, got, want, bound)
				}
				if change[i] != kept[i] {
					t.Fatalf("length %d: the change at %d was changed", n, i)
				}
			}
		}
	})
}

func BenchmarkMul(b *testing.B) {
	const rows, depth, cols = 516, 384, 1536
	r := rand.New(rand.NewPCG(1, 2))
	w, x := NewView(randoms(r, cols*depth), cols, depth), NewView(randoms(r, rows*depth), rows, depth)
	dst := NewView(make([]float32, rows*cols), rows, cols)
	for _, k := range Kernels() {
		b.Run(k.String(), func(b *testing.B) {
			m, s := k.NewMatrix().PackRows(w, make([]float32, cols)), new(Scratch)
			for b.Loop() {
				m.Mul(dst, x, s)
			}
			flops := 2 * float64(rows*depth*cols) * float64(b.N)
			b.ReportMetric(flops/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}

func BenchmarkVector(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, k := range Kernels() {
		for _, n := range []int{18, 384, 1536} {
			x, y := randoms(r, n), randoms(r, n)
			bench := func(name string, f func()) {
				b.Run(fmt.Sprintf("%s/%s/%d", name, k, n), func(b *testing.B) {
					for b.Loop() {
						f()
					}
				})
			}
			bench("dot", func() { k.Dot(x, y) })
			bench("softmax", func() { k.Softmax(x, 1) })
			bench("gelu", func() { k.GELU(x) })
		}
	}
}
