package linear

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/racflow/racflow/plugins/internal/simd"
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

func randomView(r *rand.Rand, rows, cols int) simd.View {
	v := simd.View{Rows: rows, Cols: cols, Stride: cols + r.IntN(5)}
	v.Data = randoms(r, rows*v.Stride)
	return v
}

func eachKernel(t *testing.T, f func(t *testing.T, k *simd.Kernel, r *rand.Rand)) {
	for _, k := range simd.Kernels() {
		t.Run(k.String(), func(t *testing.T) { f(t, k, rand.New(rand.NewPCG(1, 2))) })
	}
}

// eachUnit runs f for every unit of this CPU, with a kernel for which it is the best.
func eachUnit(t *testing.T, f func(t *testing.T, k *simd.Kernel, r *rand.Rand)) {
	k := simd.Best()
	for i, u := range unitsFor(k) {
		t.Run(u.name, func(t *testing.T) { f(t, withUnit(t, k, i), rand.New(rand.NewPCG(1, 2))) })
	}
}

// withUnit returns a kernel whose best unit is unit i of k.
func withUnit(t testing.TB, k *simd.Kernel, i int) *simd.Kernel {
	other := *k
	units.Store(&other, unitsFor(k)[i:])
	t.Cleanup(func() { units.Delete(&other) })
	return &other
}

// EachUnit is [eachUnit] for one kernel, for tests of what is made of layers.
func EachUnit(t *testing.T, k *simd.Kernel, f func(name string, k *simd.Kernel)) {
	for i, u := range unitsFor(k) {
		f(u.name, withUnit(t, k, i))
	}
}

// multiply returns the product with a layer, computed some output columns at a time, or with the inputs in slices.
func multiply(k *simd.Kernel, p Precision, l *Layer, r *rand.Rand) func(dst, x simd.View) {
	in := NewInput(k, p)
	cols := func(v simd.View, col, n int) simd.View {
		return simd.View{Data: v.Data[min(col, len(v.Data)):], Rows: v.Rows, Cols: min(n, v.Cols-col), Stride: v.Stride}
	}
	return func(dst, x simd.View) {
		if r.IntN(2) == 0 {
			for first := 0; first < x.Cols; first += l.Slice() {
				l.Add(dst, in.Set(cols(x, first, l.Slice()), nil), first)
			}
			return
		}
		in.Set(x, nil)
		for col := 0; col < dst.Cols; {
			n := PanelCols * (1 + r.IntN(4))
			l.Mul(cols(dst, col, n), in, col)
			col += n
		}
	}
}

// shapes are rows, depth and outputs at which products are cut, and random ones.
func shapes(r *rand.Rand, random int) [][3]int {
	s := [][3]int{{1, 800, 40}, {2, 390, 33}, {31, 1536, 64}, {33, 770, 50}, {65, 385, 31}, {97, 384, 32}, {130, 400, 64}, {1, 1, 1}, {5, 2100, 7}, {0, 3, 4}}
	for range random {
		s = append(s, [3]int{r.IntN(80), 1 + r.IntN(150), 1 + r.IntN(100)})
	}
	return s
}

const untouched = 12345

// result returns a matrix for results, with room around it.
func result(rows, cols int) simd.View {
	dst := simd.View{Rows: rows, Cols: cols, Stride: cols + 3}
	dst.Data = make([]float32, rows*dst.Stride+40)
	for i := range dst.Data {
		dst.Data[i] = untouched
	}
	return dst
}

// checkOutside checks that nothing was written outside a result.
func checkOutside(t *testing.T, dst simd.View) {
	t.Helper()
	for i, v := range dst.Data {
		if (i%dst.Stride >= dst.Cols || i/dst.Stride >= dst.Rows) && v != untouched {
			t.Fatalf("wrote outside the result, at float %d", i)
		}
	}
}

// checkProduct compares dst with x·wᵀ + bias in float64.
func checkProduct(t *testing.T, dst, x, w simd.View, bias []float32, bound func(size float64) float64) {
	t.Helper()
	for i := range dst.Rows {
		for j := range dst.Cols {
			want, size := float64(bias[j]), math.Abs(float64(bias[j]))
			for p, v := range x.Row(i) {
				product := float64(v) * float64(w.Row(j)[p])
				want += product
				size += math.Abs(product)
			}
			if got := float64(dst.Row(i)[j]); !(math.Abs(got-want) <= bound(size)) {
				t.Fatalf("%d×%d times %d×%d, element (%d, %d): got %v, want %v within %g",
					x.Rows, x.Cols, x.Cols, w.Rows, i, j, got, want, bound(size))
			}
		}
	}
	checkOutside(t, dst)
}

func TestFloat32(t *testing.T) {
	eachKernel(t, func(t *testing.T, k *simd.Kernel, r *rand.Rand) {
		for _, s := range shapes(r, 150) {
			x, w, bias := randomView(r, s[0], s[1]), randomView(r, s[2], s[1]), randoms(r, s[2])
			dst := result(s[0], s[2])
			multiply(k, Float32, New(k, Float32, w, bias, nil), r)(dst, x)
			checkProduct(t, dst, x, w, bias, func(size float64) float64 { return float64(s[1]+1) * epsilon * size })
		}
	})
}

// TestInt8Exact checks that every unit gives the same bits as plain Go.
func TestInt8Exact(t *testing.T) {
	plain := simd.Portable()
	eachUnit(t, func(t *testing.T, k *simd.Kernel, r *rand.Rand) {
		for _, s := range shapes(r, 60) {
			x, w, bias := randomView(r, s[0], s[1]), randomView(r, s[2], s[1]), randoms(r, s[2])
			for i := range x.Rows { // rows of all magnitudes, with outliers
				row := x.Row(i)
				row[r.IntN(len(row))] *= 100
				for j, f := 0, float32(math.Ldexp(1, r.IntN(120)-60)); j < len(row); j++ {
					row[j] *= f
				}
			}
			seed := r.Uint64()
			want, got := result(s[0], s[2]), result(s[0], s[2])
			multiply(plain, Int8, New(plain, Int8, w, bias, nil), rand.New(rand.NewPCG(seed, 1)))(want, x)
			multiply(k, Int8, New(k, Int8, w, bias, nil), rand.New(rand.NewPCG(seed, 1)))(got, x)
			for i := range got.Data {
				if math.Float32bits(got.Data[i]) != math.Float32bits(want.Data[i]) {
					t.Fatalf("%v: float %d: got %v, plain Go %v", s, i, got.Data[i], want.Data[i])
				}
			}
		}
	})
}

// TestInt8 compares plain Go with the exact product: the error is at most half a rounding step for each term.
func TestInt8(t *testing.T) {
	k, r := simd.Portable(), rand.New(rand.NewPCG(1, 2))
	for _, s := range shapes(r, 60) {
		x, w, bias := randomView(r, s[0], s[1]), randomView(r, s[2], s[1]), randoms(r, s[2])
		dst := result(s[0], s[2])
		multiply(k, Int8, New(k, Int8, w, bias, nil), r)(dst, x)
		checkOutside(t, dst)
		for i := range dst.Rows {
			low, high := slices.Min(x.Row(i)), slices.Max(x.Row(i))
			step := float64(high-low) / 255
			for j := range dst.Cols {
				want, bound := float64(bias[j]), 1e-5
				top := 0.0
				for _, v := range w.Row(j) {
					top = max(top, math.Abs(float64(v)))
				}
				for p, v := range x.Row(i) {
					want += float64(v) * float64(w.Row(j)[p])
					bound += step/2*math.Abs(float64(w.Row(j)[p])) + top/127/2*(math.Abs(float64(v))+step/2)
				}
				if got := float64(dst.Row(i)[j]); !(math.Abs(got-want) <= bound) {
					t.Fatalf("%v, element (%d, %d): got %v, want %v within %g", s, i, j, got, want, bound)
				}
			}
		}
	}
}

// TestSmooth: with smoothing, inputs with a few far larger columns lose less, and every unit gives the bits of plain
// Go.
func TestSmooth(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const rows, depth, cols = 33, 200, 40
	x, w, bias := randomView(r, rows, depth), randomView(r, cols, depth), randoms(r, cols)
	gain, shift := randoms(r, depth), randoms(r, depth)
	for j := range depth {
		if j%50 == 7 {
			gain[j] *= 60
		}
		for i := range rows {
			x.Row(i)[j] = x.Row(i)[j]*gain[j] + shift[j]
		}
	}
	loss := func(k *simd.Kernel, s *Smoothing) (float64, []float32) {
		dst := result(rows, cols)
		New(k, Int8, w, bias, s).Mul(dst, NewInput(k, Int8).Set(x, s), 0)
		sum := 0.0
		for i := range rows {
			for j := range cols {
				want := float64(bias[j])
				for p, v := range x.Row(i) {
					want += float64(v) * float64(w.Row(j)[p])
				}
				sum += math.Pow(float64(dst.Row(i)[j])-want, 2)
			}
		}
		return sum, dst.Data
	}
	plain, _ := loss(simd.Portable(), nil)
	s := Smooth(Int8, gain, shift, w)
	smooth, want := loss(simd.Portable(), s)
	if smooth > plain/2 {
		t.Errorf("squared error %g, without smoothing %g", smooth, plain)
	}
	eachUnit(t, func(t *testing.T, k *simd.Kernel, _ *rand.Rand) {
		if _, got := loss(k, s); !slices.Equal(got, want) {
			t.Error("differs from plain Go")
		}
	})
	if Smooth(Float32, gain, shift, w) != nil {
		t.Error("smoothing beside int8")
	}
	zero := Smooth(Int8, make([]float32, depth), nil, simd.NewView(make([]float32, depth), 1, depth))
	for _, v := range append(zero.input, zero.weights...) {
		if v != 1 {
			t.Fatalf("a factor of %v for zeros", v)
		}
	}
}

// TestSmoothOfAnother: a layer keeps its precision if the smoothing was made for another layer, which does not use a
// term.
func TestSmoothOfAnother(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	const rows, depth, cols = 33, 200, 40
	x, w, another, bias := randomView(r, rows, depth), randomView(r, cols, depth), randomView(r, cols, depth), make([]float32, cols)
	gain := slices.Repeat([]float32{1}, depth)
	for i := range cols {
		another.Row(i)[7] = 0
	}
	s, k := Smooth(Int8, gain, nil, another), simd.Best()
	dst := result(rows, cols)
	New(k, Int8, w, bias, s).Mul(dst, NewInput(k, Int8).Set(x, s), 0)
	var off, size float64
	for i := range rows {
		for j := range cols {
			want := 0.0
			for p, v := range x.Row(i) {
				want += float64(v) * float64(w.Row(j)[p])
			}
			off += math.Pow(float64(dst.Row(i)[j])-want, 2)
			size += want * want
		}
	}
	if e := math.Sqrt(off / size); e > 0.06 {
		t.Errorf("relative error %.3f, want 0.06 at most", e)
	}
}

// TestInt8Extremes tests rows without spread, and the largest possible sums: no unit may saturate.
func TestInt8Extremes(t *testing.T) {
	eachUnit(t, func(t *testing.T, k *simd.Kernel, r *rand.Rand) {
		const depth = 4096
		w := simd.NewView(make([]float32, 3*depth), 3, depth)
		for i := range depth {
			w.Row(0)[i], w.Row(1)[i], w.Row(2)[i] = 1, -1, 0
		}
		x := simd.NewView(make([]float32, 4*depth), 4, depth)
		for i := range depth {
			x.Row(0)[i], x.Row(1)[i], x.Row(3)[i] = 3, float32(min(i, 1)), -1e-38
		}
		dst := result(4, 3)
		New(k, Int8, w, []float32{1, 2, 3}, nil).Mul(dst, NewInput(k, Int8).Set(x, nil), 0)
		for i, want := range [][]float32{{1 + 3*depth, 2 - 3*depth, 3}, {depth, 3 - depth, 3}, {1, 2, 3}, {1, 2, 3}} {
			for j, v := range want {
				if got := dst.Row(i)[j]; math.Abs(float64(got-v)) > 1e-2 {
					t.Errorf("row %d, column %d: got %v, want %v", i, j, got, v)
				}
			}
		}
	})
}

func TestWrongShapes(t *testing.T) {
	for _, p := range []Precision{Float32, Int8} {
		k := simd.Best()
		l := New(k, p, simd.NewView(make([]float32, 40*64), 40, 64), make([]float32, 40), nil)
		in := NewInput(k, p).Set(simd.NewView(make([]float32, 128), 2, 64), nil)
		for name, call := range map[string]func(){
			"bias":       func() { New(k, p, simd.NewView(make([]float32, 64), 1, 64), nil, nil) },
			"rows":       func() { l.Mul(simd.NewView(make([]float32, 120), 3, 40), in, 0) },
			"column":     func() { l.Mul(simd.NewView(make([]float32, 2), 2, 1), in, 1) },
			"too many":   func() { l.Mul(simd.NewView(make([]float32, 82), 2, 41), in, 0) },
			"short data": func() { l.Mul(simd.View{Data: make([]float32, 79), Rows: 2, Cols: 40, Stride: 40}, in, 0) },
			"slice":      func() { l.Add(simd.NewView(make([]float32, 80), 2, 40), in, 32) },
			"short input": func() {
				NewInput(k, p).Set(simd.View{Data: make([]float32, 127), Rows: 2, Cols: 64, Stride: 64}, nil)
			},
		} {
			t.Run(fmt.Sprintf("%s %s", p, name), func(t *testing.T) {
				defer func() {
					if recover() == nil {
						t.Error("no panic")
					}
				}()
				call()
			})
		}
	}
}

func TestPrecisionCheck(t *testing.T) {
	for p, ok := range map[Precision]bool{Float32: true, Int8: true, "": false, "fp16": false} {
		if err := p.Check(); (err == nil) != ok {
			t.Errorf("%q: %v", p, err)
		}
	}
	if Fast(simd.Portable()) {
		t.Error("plain Go is fast at int8")
	}
}

// BenchmarkMul compares the precisions; with -cpu 1 the figures are for one core.
func BenchmarkMul(b *testing.B) {
	for _, s := range [][3]int{{512, 384, 1536}, {16, 384, 1536}, {512, 768, 768}, {512, 1024, 1024}} {
		r := rand.New(rand.NewPCG(1, 2))
		x, w := simd.NewView(randoms(r, s[0]*s[1]), s[0], s[1]), simd.NewView(randoms(r, s[2]*s[1]), s[2], s[1])
		dst := simd.NewView(make([]float32, s[0]*s[2]), s[0], s[2])
		bench := func(name string, k *simd.Kernel, p Precision) {
			b.Run(fmt.Sprintf("%dx%dx%d/%s/%s", s[0], s[1], s[2], p, name), func(b *testing.B) {
				l, in := New(k, p, w, make([]float32, s[2]), nil), NewInput(k, p)
				for b.Loop() {
					l.Mul(dst, in.Set(x, nil), 0)
				}
				flops := 2 * float64(s[0]*s[1]*s[2]) * float64(b.N)
				b.ReportMetric(flops/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
		k := simd.Best()
		bench(k.String(), k, Float32)
		for i, u := range unitsFor(k) {
			if u.name != "portable" {
				bench(u.name, withUnit(b, k, i), Int8)
			}
		}
	}
}
